// Shows the neighbourhood of one contact at a time. Coordinates are given in the frame of the contact: its middle is
// the origin, the line between its atoms the x axis, and z points to where there is most room to look from.
(function () {
  const canvas = document.getElementById("canvas");
  const all = JSON.parse(document.getElementById("neighbourhoods").textContent);
  const items = [...document.querySelectorAll(".viewer li")];
  const buttons = [...document.querySelectorAll(".switch button")];
  const carbon = { protein: "#2f9e6e", DNA: "#d9822b", other: "#8a8f98" };
  const element = { N: "#3b5bdb", O: "#e03131", P: "#f08c00", S: "#e6b800", H: "#d5dae0" };
  let chosen = 0, state = 0, view = null;
  try {
    view = $3Dmol.createViewer(canvas, { backgroundColor: "white", antialias: true, disableFog: true });
  } catch (error) {
    canvas.textContent = "This browser offers no WebGL: the pictures cannot be drawn.";
    return;
  }

  function show(turnCamera) {
    const scene = all[chosen];
    const place = (k) => {
      const a = scene.atoms[k];
      return { x: a[3 + 3 * state], y: a[4 + 3 * state], z: a[5 + 3 * state] };
    };
    const partners = scene.atoms.map(() => []);
    scene.bonds.forEach(([i, j]) => { partners[i].push(j); partners[j].push(i); });
    const atoms = scene.atoms.map((a, k) => ({
      elem: a[0], atom: a[1], resn: a[2], serial: k, index: k, ...place(k),
      bonds: partners[k], bondOrder: partners[k].map(() => 1), properties: { own: a[10] },
      color: a[0] === "C" ? carbon[a[9]] : element[a[0]] || "#8a8f98",
    }));
    view.removeAllModels(); view.removeAllShapes(); view.removeAllLabels();
    const model = view.addModel();
    model.addAtoms(atoms);
    model.setStyle({}, { stick: { radius: 0.07 } });
    model.setStyle({ predicate: (a) => a.properties.own }, { stick: { radius: 0.16 }, sphere: { scale: 0.18 } });
    const [p, q] = scene.pair.map(place);
    [p, q].forEach((point) => view.addSphere({ center: point, radius: 0.62, color: "#c2413b", opacity: 0.6 }));
    view.addCylinder({ start: p, end: q, radius: 0.05, dashed: true, color: "#c2413b", fromCap: 1, toCap: 1 });
    const text = (state ? scene.after : scene.distance).toFixed(2) + " \u00c5";
    view.addLabel(text, { position: { x: (p.x + q.x) / 2, y: (p.y + q.y) / 2, z: (p.z + q.z) / 2 + 1 },
      alignment: "center", screenOffset: { x: 0, y: 58 }, fontSize: 14, backgroundColor: "#c2413b", backgroundOpacity: 0.85 });
    model.setHoverable({}, true, (a) => {
      a.mark = view.addLabel(a.resn + ":" + a.atom, { position: a, fontSize: 12, backgroundColor: "#1d2733" });
    }, (a) => { if (a.mark) { view.removeLabel(a.mark); delete a.mark; } });
    if (turnCamera) {
      view.setView([0, 0, 0, 0, 0, 0, 0, 1]);
      view.zoomTo({ predicate: (a) => Math.hypot(a.x, a.y, a.z) < 6.5 });
      view.center({ serial: scene.pair });
    }
    view.render();
    items.forEach((item, k) => item.classList.toggle("on", k === chosen));
    buttons.forEach((button) => button.classList.toggle("on", Number(button.dataset.state) === state));
    document.body.dataset.shown = chosen + "/" + state + "/" + atoms.length;
  }

  const choose = (k) => { chosen = k; show(true); };
  items.forEach((item, k) => {
    item.addEventListener("click", () => choose(k));
    item.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(k); });
  });
  buttons.forEach((button) => button.addEventListener("click", () => { state = Number(button.dataset.state); show(false); }));
  window.addEventListener("resize", () => view.resize());
  show(true);
})();
