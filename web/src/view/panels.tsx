// The panels that are no part of the first load.
export { Captures } from "./captures";
export { Compare } from "./compare";
export { Fix } from "./fix";
export { History } from "./history";
export { Lab } from "./lab";
export { Stored } from "./stored";
export { Sweep } from "./sweep";
export { WhatIf } from "./whatif";
