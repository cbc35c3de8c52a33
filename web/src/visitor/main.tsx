import { render } from "preact";
import "../style.css";
import { Failure } from "./engine";
import { drawWith } from "./signals";
import { leave, loadAbout, show, stop } from "./state";
import "./visitor.css";
import { App } from "./view";

const place = document.getElementById("page");
if (place) {
  place.replaceChildren();
  show();
  void loadAbout();
  addEventListener("popstate", show);
  addEventListener("pagehide", leave);
  addEventListener("keydown", ({ key }) => {
    if (key === "Escape") stop();
  });
  addEventListener("offline", () => {
    stop(new Failure("lost", "the network is down: this computer reports that it is offline"));
  });
  drawWith(() => {
    render(<App />, place);
  });
}
