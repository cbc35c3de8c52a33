//! Tables, pages, JSON and CSV as they are written, and each against its schema.

mod capture_html;
mod consistency;
mod datagrams;
mod fixture;
mod html;
mod iperf3_json;
mod labels;
mod measurement;
mod measurement_schema;
mod schema;
mod shared_path;
mod table;
mod time_states;
