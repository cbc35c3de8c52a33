// Made by 'npm run types' from docs/error.schema.json. Do not edit.

/**
 * What this version of bdp writes, exactly. Every member is always present but those that are not required; what is not known is null. A later minor version may add members: a reader ignores members that it does not know, and refuses a `schema` with a larger number. Explained in docs/exit-codes.md.
 */
export interface ErrorDocument {
  /**
   * Name and version of this document's schema.
   */
  schema: "bdp.error/1";
  /**
   * Version of bdp.
   */
  bdp: string;
  /**
   * Always null: nothing is stored.
   */
  run: null;
  error: Failure;
}
/**
 * The error that ended bdp.
 */
export interface Failure {
  /**
   * `usage`: the request was wrong. `environment`: the environment refused. `bug`: bdp has a bug. `interrupted`: a signal ended it before there was a result.
   */
  kind: "usage" | "environment" | "bug" | "interrupted";
  /**
   * What failed, on what, why, and what to do; without the `bdp: ` of standard error.
   */
  message: string;
  /**
   * Exit code; for a signal, the code that a shell reports.
   */
  exit_code: 2 | 3 | 4 | 129 | 130 | 131 | 143;
}
/**
 * An error; its text is also printed on standard error.
 *
 * This interface was referenced by `ErrorDocument`'s JSON-Schema
 * via the `definition` "failure".
 */
export interface Failure1 {
  /**
   * `usage`: the request was wrong. `environment`: the environment refused. `bug`: bdp has a bug. `interrupted`: a signal ended it before there was a result.
   */
  kind: "usage" | "environment" | "bug" | "interrupted";
  /**
   * What failed, on what, why, and what to do; without the `bdp: ` of standard error.
   */
  message: string;
  /**
   * Exit code; for a signal, the code that a shell reports.
   */
  exit_code: 2 | 3 | 4 | 129 | 130 | 131 | 143;
}
