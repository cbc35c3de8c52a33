// Documents of bdp, as they come.
import type { Measurement, Measurements } from "./generated/measurement";

export type { Measurement, Measurements };

export const isMeasurements = (document: unknown): document is Measurements =>
  typeof document === "object" && document !== null && "schema" in document && document.schema === "bdp.measurements/1";
