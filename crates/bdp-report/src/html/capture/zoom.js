/*<![CDATA[*/
// Charts over time that zoom together. Each is whole without this script: it changes which part of the drawn curves is shown, and the axes.
"use strict";
(() => {
  // The least part of the whole time that can be shown.
  const LEAST = 1e-4;
  // Lines of values and of times at most.
  const VALUES = 4, TIMES = 6;
  // A curve that may be cut is shown whole up to so many times the height of the others above them.
  const NEAR = 1;
  // A shorter way of the pointer is a click.
  const CLICK = 5;

  // Round values from low to high: 1, 2, 5 x 10^n, as multiples of a unit.
  const ticks = (low, high, most, unit) => {
    const least = (high - low) / unit / most;
    const decade = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 5, 10].map(n => n * decade).find(n => n >= least * 0.999) * unit;
    const all = [];
    for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n++) all.push(n * step);
    return { all, step };
  };
  const digits = step => Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const UNITS = [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 1024], ["B", 1]];
  const unitOf = bytes => UNITS.find(([, size]) => Math.abs(bytes) >= size) || UNITS[3];
  // Three digits that count.
  const short = value => {
    if (!value) return "0";
    const places = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
    return value.toFixed(Math.min(places, 6));
  };

  // The corners of a curve of steps, in units of its drawing.
  const corners = d => {
    const all = [];
    let x = 0, y = 0;
    for (const [, command, rest] of d.matchAll(/([MHV])([^MHV]*)/g)) {
      const given = rest.trim().split(" ").map(Number);
      if (command === "M") [x, y] = given;
      else if (command === "H") [x] = given;
      else [y] = given;
      all.push([x, y]);
    }
    return all;
  };

  class Chart {
    constructor(svg) {
      this.svg = svg;
      this.plot = svg.querySelector(".plot");
      const of = name => Number(this.plot.getAttribute(name));
      this.box = { x: of("x"), y: of("y"), width: of("width"), height: of("height") };
      const { low, high, fit, unit } = this.plot.dataset;
      Object.assign(this, { low: Number(low), high: Number(high), fit, unit });
      this.values = svg.querySelector(".values");
      this.times = svg.querySelector(".times");
      this.whole = [this.values.innerHTML, this.times.innerHTML, this.plot.getAttribute("viewBox")];
      this.curves = [...svg.querySelectorAll("path[data-name]")].map(path => ({
        name: path.dataset.name,
        isWithin: path.dataset.within === "yes",
        corners: corners(path.getAttribute("d")),
      }));
      this.top = 0;
      this.tall = this.box.height;
      this.over = this.make("g", {});
      svg.append(this.over);
    }

    make(name, attributes, text) {
      const element = document.createElementNS(this.svg.namespaceURI, name);
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
      if (text !== undefined) element.textContent = text;
      return element;
    }

    // The value at a height of the drawing.
    value(y) {
      return this.low + (1 - y / this.box.height) * (this.high - this.low);
    }

    // The heights between which the curves lie in a part of the drawing.
    reach(left, right, curves) {
      let top = Infinity, bottom = -Infinity;
      const take = y => { top = Math.min(top, y); bottom = Math.max(bottom, y); };
      for (const { corners } of curves) {
        let before;
        for (const [x, y] of corners) {
          if (x > right) break;
          if (x >= left) take(y);
          else before = y;
        }
        if (before !== undefined) take(before);
      }
      return [top, bottom];
    }

    // Which heights are shown beside a part of the time.
    heights(left, right) {
      let [top, bottom] = this.reach(left, right, this.curves.filter(curve => curve.isWithin));
      if (!(bottom >= top)) return [0, this.box.height];
      if (this.fit === "zero") bottom = this.box.height;
      // Others are shown where they are near.
      const [other] = this.reach(left, right, this.curves.filter(curve => !curve.isWithin));
      if (other > top - NEAR * (bottom - top)) top = Math.min(top, other);
      const room = Math.max(5e-3, (bottom - top) * 0.05);
      return [top - room, this.fit === "zero" ? bottom : bottom + room];
    }

    // Shows the part from one share of the time to another.
    show([from, to], seconds) {
      this.view = [from, to];
      if (from === 0 && to === 1) {
        [this.values.innerHTML, this.times.innerHTML] = this.whole;
        this.plot.setAttribute("viewBox", this.whole[2]);
        [this.top, this.tall] = [0, this.box.height];
        return;
      }
      const left = from * this.box.width, wide = (to - from) * this.box.width;
      const [top, bottom] = this.heights(left, left + wide);
      [this.top, this.tall] = [top, bottom - top];
      this.plot.setAttribute("viewBox", [left, top, wide, bottom - top].join(" "));
      this.drawValues(this.value(bottom), this.value(top));
      this.drawTimes(from * seconds, to * seconds);
    }

    drawValues(low, high) {
      const { x, y, width, height } = this.box;
      const [name, size] = this.unit === "bytes" ? unitOf(high) : [this.unit, 1];
      const { all, step } = ticks(low, high, VALUES, size);
      const label = value => (value / size).toFixed(digits(step / size));
      const parts = [];
      for (const value of all) {
        const at = y + height * (1 - (value - low) / (high - low));
        parts.push(this.make("path", { class: "grid", d: "M" + x + " " + at + "H" + (x + width) }));
        // The axis of time is there.
        if (value === 0) continue;
        const text = this.unit === "bytes" ? label(value) + " " + name : label(value);
        parts.push(this.make("text", { class: "tick", x: x - 8, y: at + 4, "text-anchor": "end" }, text));
      }
      if (this.unit !== "bytes") {
        const place = { class: "tick", x: x - 8, y: y + height + 20, "text-anchor": "end" };
        parts.push(this.make("text", place, this.unit));
      }
      this.values.replaceChildren(...parts);
    }

    drawTimes(low, high) {
      const { x, y, width, height } = this.box;
      const bottom = y + height;
      const { all, step } = ticks(low, high, TIMES, 1);
      const parts = [this.make("path", { class: "axis", d: "M" + x + " " + bottom + "H" + (x + width) })];
      for (const value of all) {
        const at = x + width * (value - low) / (high - low);
        parts.push(this.make("path", { class: "axis", d: "M" + at + " " + bottom + "V" + (bottom + 4) }));
        // A label that would pass an edge is left out.
        if (at - x > 20 ? x + width - at > 20 : false) {
          const place = { class: "tick", x: at, y: bottom + 20, "text-anchor": "middle" };
          parts.push(this.make("text", place, value.toFixed(digits(step)) + " s"));
        }
      }
      this.times.replaceChildren(...parts);
    }

    // The share of the whole time at the pointer.
    share(event) {
      const frame = this.svg.getBoundingClientRect();
      const scale = this.svg.viewBox.baseVal.width / frame.width;
      const within = ((event.clientX - frame.left) * scale - this.box.x) / this.box.width;
      const [from, to] = this.view;
      return from + Math.min(1, Math.max(0, within)) * (to - from);
    }

    placeOf(share) {
      const [from, to] = this.view;
      return this.box.x + this.box.width * (share - from) / (to - from);
    }

    // A value as it is read.
    read(value) {
      if (this.unit !== "bytes") return short(value) + " " + this.unit;
      const [name, size] = unitOf(value);
      return (name === "B" ? value.toFixed(0) : short(value / size)) + " " + name;
    }

    // The line at the pointer with the values there, or the part that is being chosen.
    mark(share, seconds, since) {
      const { x, y, width, height } = this.box;
      if (share === undefined) {
        this.over.replaceChildren();
        return;
      }
      const at = this.placeOf(share);
      const parts = [this.make("path", { class: "pointer", d: "M" + at + " " + y + "V" + (y + height) })];
      if (since !== undefined) {
        const other = this.placeOf(since);
        const place = { class: "chosen", x: Math.min(at, other), y, width: Math.abs(at - other), height };
        parts.push(this.make("rect", place));
      }
      const span = (this.view[1] - this.view[0]) * seconds;
      const places = Math.min(6, Math.max(2, digits(span) + 3));
      const said = [(share * seconds).toFixed(places) + " s"];
      for (const { name, corners } of this.curves) {
        const before = corners.findLast(corner => share * width >= corner[0]);
        if (before) said.push(name + " " + this.read(this.value(before[1])));
      }
      const place = { class: "name", x: x + width, y: y - 8, "text-anchor": "end" };
      parts.push(this.make("text", place, said.join(" · ")));
      this.over.replaceChildren(...parts);
    }
  }

  class Group {
    constructor(root) {
      this.root = root;
      this.seconds = Number(root.dataset.seconds);
      this.charts = [...root.querySelectorAll(".chart")].map(svg => new Chart(svg));
      this.show(0, 1);
      for (const hint of root.querySelectorAll("p[hidden]")) hint.hidden = false;
      root.tabIndex = 0;
      root.addEventListener("keydown", event => this.key(event));
      for (const chart of this.charts) this.listen(chart);
    }

    show(from, to) {
      const wide = Math.min(1, Math.max(LEAST, to - from));
      from = Math.min(Math.max(0, from), 1 - wide);
      this.view = wide === 1 ? [0, 1] : [from, from + wide];
      for (const chart of this.charts) chart.show(this.view, this.seconds);
    }

    // Shows factor times as much, with a share of the time where it is.
    scale(factor, about) {
      const [from, to] = this.view;
      this.show(about - (about - from) * factor, about + (to - about) * factor);
    }

    move(part) {
      const [from, to] = this.view;
      const by = part * (to - from);
      this.show(from + by, to + by);
    }

    mark(share, since) {
      for (const chart of this.charts) chart.mark(share, this.seconds, since);
    }

    listen(chart) {
      const { svg } = chart;
      let since, began;
      svg.addEventListener("pointerdown", event => {
        if (event.button !== 0) return;
        [since, began] = [chart.share(event), event.clientX];
        svg.setPointerCapture(event.pointerId);
      });
      svg.addEventListener("pointermove", event => this.mark(chart.share(event), since));
      svg.addEventListener("pointerup", event => {
        const share = chart.share(event);
        const isDrag = since !== undefined ? Math.abs(event.clientX - began) >= CLICK : false;
        if (isDrag) this.show(Math.min(share, since), Math.max(share, since));
        since = undefined;
        this.mark(isDrag ? undefined : share);
      });
      svg.addEventListener("pointercancel", () => { since = undefined; this.mark(); });
      svg.addEventListener("pointerleave", () => { if (since === undefined) this.mark(); });
      svg.addEventListener("dblclick", () => { this.show(0, 1); this.mark(); });
      svg.addEventListener("wheel", event => this.wheel(event, chart), { passive: false });
    }

    // The wheel alone moves the page.
    wheel(event, chart) {
      const isSideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
      const lines = event.deltaMode === 1 ? 20 : 1;
      if (event.ctrlKey || event.metaKey) {
        this.scale(Math.exp(Math.max(-200, Math.min(200, event.deltaY * lines)) * 0.004), chart.share(event));
      } else if (isSideways ? this.view[1] - this.view[0] !== 1 : false) {
        this.move((event.deltaX || event.deltaY) * lines / 800);
      } else {
        return;
      }
      event.preventDefault();
      this.mark(chart.share(event));
    }

    key(event) {
      const middle = (this.view[0] + this.view[1]) / 2;
      const does = {
        "+": () => this.scale(0.5, middle),
        "=": () => this.scale(0.5, middle),
        "-": () => this.scale(2, middle),
        ArrowLeft: () => this.move(-0.25),
        ArrowRight: () => this.move(0.25),
        0: () => this.show(0, 1),
      }[event.key];
      if (!does || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      does();
      this.mark();
    }
  }

  for (const root of document.querySelectorAll(".zoomable")) new Group(root);
})();
/*]]>*/
