// Documents of bdp, as they come.
import type { Measurement, Measurements } from "./generated/measurement";

export type { Measurement, Measurements };

export const isMeasurements = (document: unknown): document is Measurements =>
  typeof document === "object" && document !== null && "schema" in document && document.schema === "bdp.measurements/1";

/** A document of this schema, `bdp.pcap/1`; null if it is another. */
export const ofSchema = <T extends { schema: string }>(document: unknown, schema: T["schema"]): T | null =>
  typeof document === "object" && document !== null && "schema" in document && document.schema === schema ? (document as T) : null;
