// The token is in the fragment, which no server and no log sees. It is exchanged once.
const token = location.hash.slice(1);
history.replaceState(null, "", location.pathname);
const say = (text) => { document.getElementById("text").textContent = text; };
try {
  const answer = await fetch("/ui/session", { method: "POST", headers: { "X-Drivebay-Token": token } });
  const body = await answer.json();
  if (answer.ok) {
    sessionStorage.setItem("token", body.token);
    location.replace("/ui/");
  } else {
    say(body.error.message.replaceAll("`", ""));
  }
} catch {
  say("The command that serves the page does not answer: run it again and open the link that it prints.");
}
