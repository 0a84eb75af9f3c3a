// A person's device in a browser: umpc/people/device.py and messages.py, byte for byte.
//
// Steps of a place, each in IndexedDB before the next one begins:
//   {place, device}                the key that asks for the secret: the dealer answers no other one
//   {place, receipt, boxes}        both boxes: only these bytes leave, however often
//   {place, receipt, signatures}   both receipts: boxes are deleted
// Token, answer, secret and nonce are never stored here; page.html keeps them out of saved forms.

// --- bytes ---------------------------------------------------------------------------------------

const { subtle } = crypto;
const utf8 = (text) => new TextEncoder().encode(text);
const join = (...parts) => Uint8Array.from(parts.flatMap((part) => [...part]));
const word = (number, size = 8) =>
  Uint8Array.from({ length: size }, (_, at) => Number((BigInt(number) >> BigInt(8 * at)) & 255n));
const integer = (bytes) => bytes.reduceRight((sum, each) => (sum << 8n) | BigInt(each), 0n);
const random = () => crypto.getRandomValues(new Uint8Array(32));
const fault = (kind, more) => Object.assign(new Error(kind), { kind, more });

// --- messages ------------------------------------------------------------------------------------

const digest = async (...parts) => {
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

const sign = async (seed, text) =>
  new Uint8Array(await subtle.sign("Ed25519", await imported("Ed25519", seed, "sign"), text));

const GCM = { name: "AES-GCM", iv: new Uint8Array(12) };
const sealing = async (use, about, own, other, ...ends) => {
  const key = await derive(await agree(own, other), use, ...about, ...ends);
  return subtle.importKey("raw", key, "AES-GCM", false, ["encrypt", "decrypt"]);
};

const seal = async (use, about, to, secret, text) => {
  const sender = await publicOf(secret);
  const key = await sealing(use, about, secret, to, sender, to);
  return join(sender, new Uint8Array(await subtle.encrypt(GCM, key, text)));
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

export const openSecret = async (survey, place, secret, sealed) => {
  const sender = sealed.slice(0, 32);
  const about = [survey.hash, place];
  const to = await publicOf(secret);
  const key = await sealing("person's secret", about, secret, sender, sender, to);
  return new Uint8Array(await subtle.decrypt(GCM, key, sealed.slice(32)));
};

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

export const unitsOf = (field, given, point) => {
  if (field.hint === "choice") {
    if (!given) throw fault("choose_one");
    return BigInt(given);
  }
  const [, sign, whole, mark, part = ""] = /^([+-]?)(\d+)(?:([.,])(\d+))?$/.exec(given.trim()) ?? [];
  const [over, under] = field.ratio.map(BigInt);
  // three digits behind a mark are thousands, unless the step has them and the language the mark
  const isFine = (100n * over) % under !== 0n;
  const isGrouped = part.length === 3 && !(isFine && mark === point);
  if (!whole || isGrouped || (mark && field.hint === "whole")) throw fault("number", field);
  const above = BigInt(sign + whole + part) * under;
  const below = 10n ** BigInt(part.length) * over;
  const units = above / below;
  if (above % below) throw fault("step", field);
  if (units < field.least || units > field.most) throw fault("range", field);
  return units;
};

export const cellOf = (survey, units) => {
  const value = (name) => {
    const { cuts } = survey.fields.find((field) => field.name === name);
    return cuts ? BigInt(cuts.filter((cut) => cut <= units[name]).length) : units[name];
  };
  const product = ([coefficient, ...names]) =>
    names.reduce((sofar, name) => sofar * value(name), BigInt(coefficient));
  const digit = ({ terms }) => terms.reduce((sum, term) => sum + product(term), 0n);
  return Number(survey.axes.reduce((cell, axis) => cell * BigInt(axis.size) + digit(axis), 0n));
};

// --- the device ----------------------------------------------------------------------------------

let study;

const ended = (asked, good, bad) =>
  new Promise((done, fail) => {
    asked[good] = done;
    asked[bad] = () => fail(fault("storage"));
  });

const stored = async (mode, use) => {
  const opening = indexedDB.open(`umpc ${study.id}`);
  opening.onupgradeneeded = () => opening.result.createObjectStore("places", { keyPath: "place" });
  await ended(opening, "onsuccess", "onerror");
  // strict: on the disk when it is complete
  const write = opening.result.transaction("places", mode, { durability: "strict" });
  const asked = use(write.objectStore("places"));
  await ended(write, "oncomplete", "onabort");
  opening.result.close();
  return asked.result;
};
const read = (place) => stored("readonly", (places) => places.get(place));
const readAll = () => stored("readonly", (places) => places.getAll());
const keep = (kept) => stored("readwrite", (places) => places.put(kept));

const call = async (path, ...body) => {
  const asked = { method: "POST", body: JSON.stringify(body), signal: AbortSignal.timeout(90000) };
  const found = await fetch(path, body.length ? asked : {})
    .then((answer) => answer.json())
    .catch(() => ({ kind: "offline" }));
  if (found.kind) throw fault(found.kind, found);
  return Uint8Array.fromBase64(found.data);
};

// two tabs must never make two numbers, so a lock keeps them apart; false: there is one already
const makeBoxes = ({ place, seed, units }) =>
  navigator.locks.request(`umpc ${study.id} ${place}`, async () => {
    const kept = (await read(place)) ?? { place, device: random() };
    if (kept.receipt) return false;
    await keep(kept);
    const [device, signature] = await request(study, place, seed, kept.device);
    const sealed = await call("relay/2", place, device.toBase64(), signature.toBase64());
    const secret = await openSecret(study, place, kept.device, sealed).catch(() => {
      throw fault("forged", { name: study.dealer });
    });
    const { cells } = study;
    const number = (cellOf(study, units) - (await offset(study, place, secret)) + cells) % cells;
    const made = await message(study, place, number, random(), seed, [random(), random()]);
    await keep({ place, ...made });
    return true;
  });

const deliver = async ({ place, receipt, boxes }) => {
  const send = async (box, side) => {
    const found = await call(`relay/${side}`, place, box.toBase64());
    const signature = found.slice(32);
    if (await isReceipt(study, side, place, receipt, signature)) return signature;
    throw fault("forged", { name: study.names[side] });
  };
  const signatures = await Promise.all(boxes.map(send));
  await keep({ place, receipt, signatures });
};

const look = async ({ place, receipt }) => {
  for (const [side, name] of study.names.entries()) {
    const row = await call(`counted/${side}/${place}`);
    if (row.slice(8).toHex() !== receipt) throw fault("missing", { name });
  }
};

// --- the page ------------------------------------------------------------------------------------

const $ = (id) => document.getElementById(id);
let language;

const text = (key, values) => {
  const shown = (_, name) => {
    const found = values?.[name] ?? study[name] ?? "";
    const long = { dateStyle: "long", timeStyle: "short" };
    if (found instanceof Date) return found.toLocaleString(language, long);
    return /^-?\d+\.\d+$/.test(found) ? found.replace(".", text("point")) : found;
  };
  return study.texts[language][key]?.replace(/\{(\w+)\}/g, shown) ?? values.otherwise;
};
const said = new Map();
const say = (node, ...told) => {
  said.set(node, told);
  const now = told.map((one) => text(...[one].flat())).join(" ");
  // a reader for the blind says a text again that is set again
  if (node.textContent !== now) node.textContent = now;
  return node;
};
const make = (tag, more, ...inside) => {
  const node = Object.assign(document.createElement(tag), more);
  node.append(...inside);
  return node;
};
const saying = (tag, told, more) => say(make(tag, more), told);
const translate = (chosen) => {
  language = document.documentElement.lang = chosen;
  for (const [node, told] of said) say(node, ...told);
};
const reason = ({ kind = "refused", more, message: detail }) => [kind, more ?? { detail }];
const complain = (error, ...more) => say($("fault"), reason(error), ...more);

const fieldOf = (field, at) => {
  const { name, hint, categories } = field;
  const about = (key, otherwise) => [`field ${key}`, { otherwise }];
  const choices = categories.map((each, value) =>
    saying("option", about(`${name} = ${each}`, each), { value }),
  );
  const input = choices.length
    ? make("select", {}, make("option", { value: "" }), ...choices)
    : make("input", { inputMode: "decimal", autocomplete: "off" });
  input.id = `field${at}`;
  const parts = [saying("b", about(name, name)), saying("span", [hint, field], { className: "quiet" })];
  return make("label", {}, ...parts, input, make("span", { className: "fault" }));
};

// what an input holds; a fault is told below it
const checked = async (id, work) => {
  const input = $(id);
  const note = say(input.nextElementSibling);
  input.ariaInvalid = null;
  try {
    return await work(input.value);
  } catch (error) {
    say(note, reason(error));
    input.ariaInvalid = "true";
  }
};

const entered = async () => {
  const units = Object.create(null);
  for (const [at, field] of study.fields.entries())
    units[field.name] = await checked(`field${at}`, (given) => unitsOf(field, given, text("point")));
  const token = await checked("token", readToken);
  await checked("sure", () => {
    if (!$("sure").checked) throw fault("tick");
  });
  const wrong = document.querySelector("[aria-invalid]");
  return wrong ? wrong.focus() : { ...token, units };
};

const receiptCard = ({ place, receipt, signatures }) => {
  const [told, ...signed] = [receipt, ...signatures].map((each) => each.toHex());
  const line = { study: study.id, place, receipt: told, signatures: signed };
  const href = URL.createObjectURL(new Blob([JSON.stringify(line) + "\n"]));
  const answer = make("p", { role: "status" });
  const check = async () => {
    say(answer, "looking");
    say(answer, await look(line).then(() => "counted", reason));
  };
  return [
    saying("h2", "receipt_title"),
    saying("p", "receipt"),
    saying("p", ["receipt_code", line], { className: "code" }),
    saying("a", "save", { href, download: "receipt.json", className: "button" }),
    saying("button", "counted?", { onclick: check }),
    answer,
    saying("a", "another", { href: "#token=" }),
  ];
};

const show = async (place) => {
  const kept = await read(place);
  const id = `place${place}`;
  const old = $(id);
  if (old && kept.boxes) return;
  const waiting = () => [
    saying("h2", "waiting_title"),
    saying("p", "waiting"),
    saying("button", "again", { onclick: resume }),
  ];
  const inside = kept.boxes ? waiting() : receiptCard(kept);
  const card = make("section", { id, tabIndex: -1 }, ...inside);
  old ? old.replaceWith(card) : $("cards").append(card);
};

// send again what waits, now and until all of it has arrived
let timer;
const sendAll = async () => {
  clearTimeout(timer);
  let waits = false;
  for (const kept of await readAll()) {
    if (!kept.boxes) continue;
    try {
      await deliver(kept);
      say($("fault"));
      say($("status"), "sent");
    } catch (error) {
      say($("status"));
      complain(error);
      waits = true;
    }
    await show(kept.place);
  }
  if (waits) timer = setTimeout(resume, 10000);
};
// one at a time: the next one begins when the former one has ended
let sending = Promise.resolve();
const resume = () => (sending = sending.then(sendAll, sendAll));

const submitted = async (event) => {
  event.preventDefault();
  const answer = await entered();
  if (!answer) return;
  $("send").disabled = true;
  say($("fault"));
  say($("status"), "sending");
  let isFirst;
  try {
    isFirst = await makeBoxes(answer);
  } catch (error) {
    say($("status"));
    return complain(error, "not_sent").scrollIntoView({ block: "center" });
  } finally {
    $("send").disabled = false;
  }
  history.replaceState(null, "", location.pathname);
  $("answer").reset();
  $("answer").hidden = true;
  await show(answer.place);
  await resume();
  if (!isFirst) {
    say($("status"));
    return complain(fault("answered")).scrollIntoView({ block: "center" });
  }
  $(`place${answer.place}`).focus();
};

const begin = async () => {
  // page.html names its digest, so whoever knows the one of page.html knows the keys too
  const answer = await fetch("study.json", { integrity: document.documentElement.dataset.study });
  const found = await answer.json();
  const { dealer, aggregators, ...about } = found.invitation;
  const told = JSON.parse(about.study);
  study = { ...told, ...told.settings.people, ...found, dealer: dealer.name };
  [study.first, study.second] = study.names = aggregators.map(({ name }) => name);
  study.opens = new Date(study.opens);
  study.closes = new Date(study.closes);
  study.hash = Uint8Array.fromBase64(study.hash);
  study.id = study.hash.toHex();
  study.keys = study.keys.map((each) => Uint8Array.fromBase64(each));
  study.boxKeys = aggregators.map(({ box_key }) => Uint8Array.fromBase64(box_key));
  // an older browser ends here at the latest, and goes on to show what to do
  await publicOf(random());
  await sign(random(), study.hash);

  for (const [value, { language }] of Object.entries(study.texts))
    $("language").append(make("option", { value, lang: value }, language));
  $("language").onchange = () => translate($("language").value);
  const wanted = navigator.languages.map((each) => each.split("-")[0]);
  translate(wanted.find((each) => each in study.texts) ?? "en");
  $("language").value = language;
  for (const node of document.querySelectorAll("[data-t]")) say(node, node.dataset.t);
  for (const key of [1, 2, study.adversary, 4, 5]) $("promise").append(saying("li", `promise ${key}`));
  $("answer").prepend(...study.fields.map(fieldOf));
  $("answer").onsubmit = submitted;

  const kept = await readAll().catch((error) => complain(error) && []);
  const sent = kept.filter(({ receipt }) => receipt);
  const linked = new URLSearchParams(location.hash.slice(1)).get("token");
  $("token").value = linked ?? "";
  const own = await readToken(linked ?? "").catch(() => ({}));
  const now = new Date(answer.headers.get("date")); // the device's clock may be wrong
  const open = study.opens <= now && now < study.closes;
  const done = linked === null ? sent.length : sent.some(({ place }) => place === own.place);
  if (!open) say($("status"), now < study.opens ? "early" : "late");
  $("answer").hidden = !open || done;
  for (const { place } of sent) await show(place);
  if (sent.length) resume();

  addEventListener("hashchange", () => location.reload());
  for (const node of document.body.children) node.hidden = node.id === "start";
};
begin();
