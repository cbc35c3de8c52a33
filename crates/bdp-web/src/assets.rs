//! The built page, as it stands in `web/dist`.

use axum::http::header;
use axum::response::{IntoResponse, Response};

macro_rules! asset {
    ($name:ident, $file:literal, $kind:literal) => {
        pub async fn $name() -> Response {
            const TEXT: &str = include_str!(concat!("../../../web/dist/", $file));
            ([(header::CONTENT_TYPE, $kind)], TEXT).into_response()
        }
    };
}

asset!(page, "index.html", "text/html; charset=utf-8");
asset!(script, "app.js", "text/javascript; charset=utf-8");
asset!(shared_script, "chunk.js", "text/javascript; charset=utf-8");
asset!(panels, "panels.js", "text/javascript; charset=utf-8");
asset!(style, "app.css", "text/css; charset=utf-8");
asset!(visitor_page, "visitor.html", "text/html; charset=utf-8");
asset!(visitor_script, "visitor.js", "text/javascript; charset=utf-8");
asset!(visitor_style, "visitor.css", "text/css; charset=utf-8");
