import { el } from "./dom.js";

export const may = () => Boolean(sessionStorage.getItem("token"));

// ask shows what an action does and to which drive, and sends it after the operator has confirmed.
export function ask(drive, action, done) {
  const dialog = document.getElementById("ask");
  const error = el("p", { class: "error", role: "alert" });
  const go = el("button", { type: "button", class: "button strong", id: "ask-go", onclick: send }, action.label);
  const fact = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value || "not known"));
  dialog.replaceChildren(
    el("h2", { id: "ask-title" }, `${action.label}?`),
    el("dl", { class: "confirm" }, fact("bay", drive.bay), fact("serial", drive.serial), fact("drive", `${drive.name} · ${drive.model}`)),
    el("p", {}, action.effect), error,
    el("div", { class: "buttons" }, el("button", { type: "button", class: "button", onclick: () => dialog.close(), autofocus: true }, "Do nothing"), go));
  // The button may have been built again meanwhile: the focus returns to the one in its place.
  dialog.onclose = () => document.querySelector(`#drive [data-do="${action.do}"]`)?.focus();
  dialog.showModal();

  async function send() {
    go.disabled = true;
    error.textContent = "";
    try {
      const answer = await fetch("/ui/actions", {
        method: "POST", headers: { "Content-Type": "application/json", "X-Drivebay-Token": sessionStorage.getItem("token") ?? "" },
        body: JSON.stringify({ do: action.do, on: Boolean(action.on), drive: drive.id, bay: drive.bay ?? "", serial: drive.serial ?? "" }),
      });
      if (answer.ok) {
        dialog.close();
        done(`${action.label}: done`);
        return;
      }
      error.textContent = (await answer.json()).error.message;
    } catch {
      error.textContent = "The daemon does not answer: nothing is known of the action.";
    }
    go.disabled = false;
  }
}
