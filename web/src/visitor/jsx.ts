// For the build of the visitor's page, where elements are calls of `h`: shorter than those of the JSX runtime.
export { Fragment, h } from "preact";
