// A person's device in a browser: umpc/people/device.py and messages.py, byte for byte.
//
// Steps of a place, each in IndexedDB before the next one begins:
//   {place, device}                the key that asks for the secret: the dealer answers no other one
//   {place, receipt, boxes, ...}   both boxes: only these bytes leave, however often
//   {place, receipt, signatures}   both receipts: boxes are deleted
// Token, answer, secret and nonce are never stored.

// --- bytes ---------------------------------------------------------------------------------------

const { subtle } = crypto;
const utf8 = (text) => new TextEncoder().encode(text);
const toBase64 = (bytes) => btoa(String.fromCharCode(...bytes));
const toHex = (bytes) => [...bytes].map((each) => each.toString(16).padStart(2, "0")).join("");
export const fromBase64 = (text) => Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
const join = (...parts) => Uint8Array.from(parts.flatMap((part) => [...part]));
const word = (number, size = 8) =>
  Uint8Array.from({ length: size }, (_, at) => Number((BigInt(number) >> BigInt(8 * at)) & 255n));
const integer = (bytes) => bytes.reduceRight((sum, each) => (sum << 8n) | BigInt(each), 0n);
const random = () => crypto.getRandomValues(new Uint8Array(32));
const fault = (kind, more) => Object.assign(new Error(kind), { kind, more });

// --- messages ------------------------------------------------------------------------------------

export const digest = async (...parts) => {
  const text = join(...parts.flatMap((part) => [word(part.length), part]));
  return new Uint8Array(await subtle.digest("SHA-256", text));
};

const label = (each) => {
  if (typeof each === "number") return join(utf8("i"), word(8, 4), word(each));
  const body = typeof each === "string" ? utf8(each) : each;
  return join(utf8(body === each ? "b" : "s"), word(body.length, 4), body);
};

const derive = async (seed, ...labels) => {
  const hmac = { name: "HMAC", hash: "SHA-256" };
  const key = await subtle.importKey("raw", seed, hmac, false, ["sign"]);
  return new Uint8Array(await subtle.sign("HMAC", key, join(...labels.map(label))));
};

// RFC 8410: what stands before the 32 bytes of a private key
const imported = (name, secret, use) => {
  const kind = name === "X25519" ? 110 : 112;
  const head = [48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, kind, 4, 34, 4, 32];
  return subtle.importKey("pkcs8", join(head, secret), name, false, [use]);
};

const agree = async (secret, other) => {
  const theirs = await subtle.importKey("raw", other, "X25519", false, []);
  const own = await imported("X25519", secret, "deriveBits");
  return new Uint8Array(await subtle.deriveBits({ name: "X25519", public: theirs }, own, 256));
};

// RFC 7748: the base point is 9
const publicOf = (secret) => agree(secret, word(9, 32));

export const sign = async (seed, text) =>
  new Uint8Array(await subtle.sign("Ed25519", await imported("Ed25519", seed, "sign"), text));

const GCM = { name: "AES-GCM", iv: new Uint8Array(12) };
const sealing = async (shared, ...labels) =>
  subtle.importKey("raw", await derive(shared, ...labels), "AES-GCM", false, ["encrypt", "decrypt"]);

export const seal = async (use, about, to, secret, text) => {
  const sender = await publicOf(secret);
  const key = await sealing(await agree(secret, to), use, ...about, sender, to);
  return join(sender, new Uint8Array(await subtle.encrypt(GCM, key, text)));
};

const unseal = async (use, about, secret, sealed) => {
  const sender = sealed.slice(0, 32);
  const own = await publicOf(secret);
  const key = await sealing(await agree(secret, sender), use, ...about, sender, own);
  return new Uint8Array(await subtle.decrypt(GCM, key, sealed.slice(32)));
};

export const offset = async (survey, place, secret) => {
  const found = await derive(secret, "person's cell", survey.hash, place);
  return Number((integer(found.slice(0, 16)) * BigInt(survey.cells)) >> 128n);
};

export const request = async (survey, place, seed, secret) => {
  const device = await publicOf(secret);
  const use = utf8("umpc request of a secret 1");
  return [device, await sign(seed, await digest(use, survey.hash, word(place), device))];
};

export const openSecret = (survey, place, secret, sealed) =>
  unseal("person's secret", [survey.hash, place], secret, sealed);

export const message = async (survey, place, number, nonce, seed, secrets) => {
  const use = utf8("umpc person 1");
  const receipt = await digest(use, survey.hash, word(place), word(number), nonce);
  const text = join(word(number, 4), nonce, await sign(seed, receipt));
  const boxes = survey.boxKeys.map((key, side) =>
    seal("box", [survey.hash, side, place], key, secrets[side], text),
  );
  return { receipt, boxes: await Promise.all(boxes) };
};

export const isReceipt = async (survey, side, place, receipt, signature) => {
  const use = utf8("umpc receipt of a person 1");
  const text = await digest(use, survey.hash, word(side), word(place), receipt);
  const curve = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const key = await subtle.importKey("raw", survey.keys[side], curve, false, ["verify"]);
  return subtle.verify(curve, key, signature, text);
};

const LETTERS = "abcdefghijklmnopqrstuvwxyz234567";

export const readToken = async (text) => {
  const letters = [...text.replace(/[\s-]/g, "").toLowerCase()].map((each) => LETTERS.indexOf(each));
  if (letters.length !== 64 || letters.includes(-1)) throw fault("typo");
  const bits = letters.reduce((sum, each) => (sum << 5n) | BigInt(each), 0n);
  const body = word(bits, 40).reverse();
  const sum = await digest(utf8("umpc token 1"), body.slice(0, 37));
  if (body.slice(37).some((each, at) => each !== sum[at])) throw fault("typo");
  return { place: Number(integer(body.slice(0, 5))), seed: body.slice(5, 37) };
};

// --- the cell of an answer, by what the server derived from the study ------------------------------

export const unitsOf = (field, text) => {
  const [, sign, whole, part = ""] = /^([+-]?)(\d+)(?:[.,](\d+))?$/.exec(text.trim()) ?? [];
  if (!whole) throw fault("number", field);
  const above = BigInt(sign + whole + part) * BigInt(field.ratio[1]);
  const below = 10n ** BigInt(part.length) * BigInt(field.ratio[0]);
  const units = above / below;
  if (above % below) throw fault("step", field);
  if (units < BigInt(field.least) || units > BigInt(field.most)) throw fault("range", field);
  return units;
};

export const cellOf = (survey, units) => {
  const value = (name) => {
    const { cuts } = survey.fields.find((field) => field.name === name);
    return cuts ? BigInt(cuts.filter((cut) => BigInt(cut) <= units[name]).length) : units[name];
  };
  const product = ([coefficient, ...names]) =>
    names.reduce((sofar, name) => sofar * value(name), BigInt(coefficient));
  const place = ({ low, terms }) => terms.reduce((sum, term) => sum + product(term), -BigInt(low));
  return Number(survey.axes.reduce((cell, axis) => cell * BigInt(axis.size) + place(axis), 0n));
};

// --- the device ----------------------------------------------------------------------------------

let study;

const stored = (mode, use) =>
  new Promise((done, fail) => {
    const opening = indexedDB.open(`umpc ${study.id}`);
    const failed = () => fail(fault("storage"));
    opening.onupgradeneeded = () => opening.result.createObjectStore("places", { keyPath: "place" });
    opening.onerror = failed;
    opening.onsuccess = () => {
      // strict: on the disk when it is complete
      const write = opening.result.transaction("places", mode, { durability: "strict" });
      const asked = use(write.objectStore("places"));
      write.onabort = failed;
      write.oncomplete = () => {
        opening.result.close();
        done(asked.result);
      };
    };
  });
const read = (place) => stored("readonly", (places) => places.get(place));
const keep = (kept) => stored("readwrite", (places) => places.put(kept));

const call = async (path, body) => {
  const asked = { method: "POST", body: JSON.stringify(body), signal: AbortSignal.timeout(90000) };
  let answer, found;
  try {
    answer = await fetch(path, body && asked);
    found = await answer.json();
  } catch {
    throw fault("offline");
  }
  if (found.kind) throw fault(found.kind, found);
  return fromBase64(found.data);
};

// two tabs must never make two numbers
const alone = (place, work) => navigator.locks.request(`umpc ${study.id} ${place}`, work);

const makeBoxes = ({ place, seed }, cell) =>
  alone(place, async () => {
    const kept = (await read(place)) ?? { place, device: random() };
    if (kept.receipt) return;
    await keep(kept);
    const [device, signature] = (await request(study, place, seed, kept.device)).map(toBase64);
    const sealed = await call("secrets", { place, device, signature });
    const secret = await openSecret(study, place, kept.device, sealed).catch(() => {
      throw fault("forged", { name: study.dealer });
    });
    const number = (cell - (await offset(study, place, secret)) + study.cells) % study.cells;
    const made = await message(study, place, number, random(), seed, [random(), random()]);
    await keep({ place, ...made, signatures: [] });
  });

const deliver = (place) =>
  alone(place, async () => {
    const kept = await read(place);
    let wrong;
    for (const side of kept.boxes ? [0, 1] : []) {
      if (kept.signatures[side]) continue;
      try {
        const found = await call(`submit/${side}`, { place, box: toBase64(kept.boxes[side]) });
        const signature = found.slice(32);
        if (!(await isReceipt(study, side, place, kept.receipt, signature)))
          throw fault("forged", { name: study.names[side] });
        kept.signatures[side] = signature;
        await keep(kept);
      } catch (error) {
        wrong = error;
      }
    }
    if (wrong) throw wrong;
    delete kept.boxes;
    await keep(kept);
  });

const look = async ({ place, receipt }) => {
  for (const side of [0, 1]) {
    const row = await call(`counted/${side}/${place}`);
    if (toHex(row.slice(8)) !== toHex(receipt)) throw fault("missing", { name: study.names[side] });
  }
};

// --- the page ------------------------------------------------------------------------------------

const $ = (id) => document.getElementById(id);
const make = (tag, more, ...inside) => {
  const node = Object.assign(document.createElement(tag), more);
  node.append(...inside);
  return node;
};
let language;

const decimal = (number) =>
  Number(number).toLocaleString(language, { useGrouping: false, maximumFractionDigits: 20 });

const text = (key, values) => {
  const shown = (_, name) => {
    const found = values?.[name] ?? study[name] ?? "";
    const long = { dateStyle: "long", timeStyle: "short" };
    if (found instanceof Date) return found.toLocaleString(language, long);
    return /^-?\d+\.\d+$/.test(found) ? decimal(found) : found;
  };
  const found = study.texts[language][key] ?? values?.otherwise ?? key;
  return found.replace(/\{(\w+)\}/g, shown);
};
const said = new Map();
const say = (node, ...told) => {
  said.set(node, told);
  const now = told.map((one) => text(...[one].flat())).join(" ");
  // a reader for the blind says a text again that is set again
  if (node.textContent !== now) node.textContent = now;
  return node;
};
const translate = (chosen) => {
  language = document.documentElement.lang = chosen;
  for (const [node, told] of said) say(node, ...told);
  document.title = text("question");
};
const complain = (error, ...more) => {
  if (!error.kind) console.error(error);
  say($("fault"), [error.kind ?? "refused", error.more ?? { detail: error.message }], ...more);
};

const named = ({ name }) => ["field " + name, { otherwise: name }];
const worded = ({ name }, word) => [`field ${name} = ${word}`, { otherwise: word }];

const fieldOf = (field, at) => {
  const id = `field${at}`;
  const choices = field.categories.map((each, value) =>
    say(make("option", { value }), worded(field, each)),
  );
  const input = choices.length
    ? make("select", { id }, make("option", { value: "" }), ...choices)
    : make("input", { id, inputMode: "decimal", autocomplete: "off" });
  input.setAttribute("aria-describedby", `${id}-hint ${id}-fault`);
  return make(
    "div",
    { className: "field" },
    say(make("label", { htmlFor: id }), named(field)),
    say(make("p", { id: `${id}-hint`, className: "quiet" }), [field.hint, field]),
    input,
    make("p", { id: `${id}-fault`, className: "fault" }),
  );
};

// what an input holds; a fault is told beside it
const checked = async (id, work) => {
  const note = say($(`${id}-fault`));
  $(id).removeAttribute("aria-invalid");
  try {
    return await work($(id).value);
  } catch (error) {
    say(note, [error.kind, error.more]);
    $(id).setAttribute("aria-invalid", "true");
  }
};

const entered = async () => {
  const units = Object.create(null);
  const shown = [];
  for (const [at, field] of study.fields.entries()) {
    const { name, hint, categories } = field;
    let word;
    units[name] = await checked(`field${at}`, (given) => {
      word = categories[given];
      if (hint === "choice" && !word) throw fault("choose_one");
      word ??= decimal(given.replace(",", "."));
      return hint === "choice" ? BigInt(given) : unitsOf(field, given);
    });
    shown.push(say(make("dt"), named(field)), say(make("dd"), worded(field, word)));
  }
  const token = await checked("token", readToken);
  const wrong = document.querySelector("[aria-invalid=true]");
  return wrong ? wrong.focus() : { token, units, shown };
};

const button = (key, onclick, className = "") => say(make("button", { onclick, className }), key);

const receiptCard = ({ place, receipt, signatures }) => {
  const shown = toHex(receipt);
  const line = { study: study.id, place, receipt: shown, signatures: signatures.map(toHex) };
  const href = URL.createObjectURL(new Blob([JSON.stringify(line) + "\n"]));
  const answer = make("p");
  answer.setAttribute("role", "status");
  const check = async () => {
    say(answer, "looking");
    const fail = (error) => say(answer, [error.kind, error.more]);
    await look({ place, receipt }).then(() => say(answer, "counted"), fail);
  };
  const about = make("dl", {}, say(make("dt"), "place"), make("dd", {}, String(place)));
  about.append(say(make("dt"), "receipt_code"), make("dd", { className: "code" }, shown));
  return [
    say(make("h2"), "receipt_title"),
    say(make("p"), "receipt"),
    about,
    say(make("a", { href, download: "receipt.json", className: "button" }), "save"),
    button("counted?", check, "plain"),
    answer,
  ];
};

const waitingCard = () => [
  say(make("h2"), "waiting_title"),
  say(make("p"), "waiting"),
  button("again", resume),
];

const show = async (place) => {
  const kept = await read(place);
  const old = $(`place${place}`);
  if (old && kept.boxes) return old;
  const inside = kept.boxes ? waitingCard() : receiptCard(kept);
  const card = make("section", { id: `place${place}`, tabIndex: -1 }, ...inside);
  old ? old.replaceWith(card) : $("cards").append(card);
  return card;
};

const places = () => stored("readonly", (all) => all.getAll());

// send again what waits, now and until all of it has arrived
let timer;
const resume = async () => {
  clearTimeout(timer);
  for (const { place, boxes } of await places()) {
    if (!boxes) continue;
    try {
      await deliver(place);
      say($("fault"));
      say($("status"), "sent");
    } catch (error) {
      say($("status"));
      complain(error);
      if (PASSING.includes(error.kind)) timer = setTimeout(resume, PAUSE);
    }
    await show(place);
  }
};
const PASSING = ["offline", "down", "busy"];
const PAUSE = 10000;

const confirmed = async ({ token, units }) => {
  $("send").disabled = true;
  say($("fault"));
  say($("status"), "sending");
  try {
    await makeBoxes(token, cellOf(study, units));
  } catch (error) {
    say($("status"));
    complain(error, "not_sent");
    return $("fault").scrollIntoView({ block: "center" });
  } finally {
    $("send").disabled = false;
  }
  history.replaceState(null, "", location.pathname);
  $("answer").reset();
  $("sure").hidden = true;
  await show(token.place);
  await resume();
  $(`place${token.place}`).focus();
};

const begin = async () => {
  const answer = await fetch("study.json");
  const found = await answer.json();
  const [first, second] = found.names;
  const moments = { opens: new Date(found.opens), closes: new Date(found.closes) };
  study = { ...found, ...moments, first, second };
  study.hash = fromBase64(found.hash);
  study.id = toHex(study.hash);
  study.keys = found.keys.map(fromBase64);
  study.boxKeys = found.boxKeys.map(fromBase64);
  // an older browser ends here, and goes on to show what to do
  await subtle.generateKey("X25519", false, ["deriveBits"]);
  await subtle.generateKey("Ed25519", false, ["sign"]);

  const known = Object.keys(study.texts);
  const wanted = navigator.languages.map((each) => each.split("-")[0]);
  language = wanted.find((each) => known.includes(each)) ?? known[0];
  for (const value of known)
    $("language").append(make("option", { value, lang: value }, study.texts[value].language));
  $("language").value = language;
  $("language").onchange = () => translate($("language").value);
  for (const node of document.querySelectorAll("[data-t]")) say(node, node.dataset.t);
  say($("question"), "question");
  for (let at = 1; at <= 5; at++) $("promise").append(say(make("li"), `promise ${at}`));
  $("fields").append(...study.fields.map(fieldOf));
  translate(language);

  const sent = await places().then((all) => all.filter((each) => each.receipt), complain) ?? [];
  const linked = new URLSearchParams(location.hash.slice(1)).get("token");
  $("token").value = linked ?? "";
  const own = linked && (await readToken(linked).catch(() => null))?.place;
  const now = new Date(answer.headers.get("date")); // the device's clock may be wrong
  const open = study.opens <= now && now < study.closes;
  if (!open) say($("status"), now < study.opens ? "early" : "late");
  $("answer").hidden = !open || (linked ? sent.some((each) => each.place === own) : sent.length > 0);
  $("another").hidden = !open || !sent.length || !$("answer").hidden;
  for (const { place } of sent) await show(place);
  if (sent.length) resume();

  let ready;
  $("answer").onsubmit = async (event) => {
    event.preventDefault();
    ready = await entered();
    if (!ready) return;
    $("given").replaceChildren(...ready.shown);
    $("answer").hidden = true;
    $("sure").hidden = false;
    $("sure").focus();
  };
  $("send").onclick = () => confirmed(ready);
  $("change").onclick = $("another").onclick = () => {
    $("sure").hidden = $("another").hidden = true;
    $("answer").hidden = false;
    $("answer").querySelector("input, select").focus();
  };
  addEventListener("online", resume);
  addEventListener("hashchange", () => location.reload());
  for (const node of document.body.children) node.hidden = node.id === "start";
};
begin();
