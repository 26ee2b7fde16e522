"use strict";

// The figures come from /metrics, once a second; what is not a figure from /api. All text is set as text, never as markup.

const $ = (id) => document.getElementById(id);
const points = 120; // that a line shows, one per second

// el makes an element with properties and children; a string is a child as text.
function el(name, properties = {}, ...children) {
	const e = Object.assign(document.createElement(name), properties);
	e.append(...children);
	return e;
}

// shape makes an element of SVG.
function shape(name, attributes = {}, ...children) {
	const e = document.createElementNS("http://www.w3.org/2000/svg", name);
	for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
	e.append(...children);
	return e;
}

function size(n) {
	for (const unit of ["B", "KB", "MB", "GB"]) {
		if (n < 1000) return (unit === "B" ? n.toFixed(0) : n.toPrecision(3)) + " " + unit;
		n /= 1000;
	}
	return n.toPrecision(3) + " TB";
}

const count = (n) => (n < 10 && n % 1 !== 0 ? n.toFixed(1) : Math.round(n).toLocaleString("en"));
const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
const percent = (part, whole) => (whole > 0 ? Math.round((100 * part) / whole) + " %" : "–");

function micros(n) {
	if (n < 1000) return n.toFixed(0) + " µs";
	return n < 1e6 ? (n / 1000).toPrecision(3) + " ms" : (n / 1e6).toPrecision(3) + " s";
}

function duration(seconds) {
	for (const [unit, of] of [["d", 86400], ["h", 3600], ["min", 60]]) if (seconds >= 2 * of) return Math.floor(seconds / of) + " " + unit;
	return Math.floor(seconds) + " s";
}

// parse reads the text format of Prometheus: a list of [labels, value] for each name.
function parse(text) {
	const names = new Map();
	for (const line of text.split("\n")) {
		const m = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line);
		if (!m) continue;
		const labels = {};
		for (const [, key, value] of (m[2] || "").matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g)) labels[key] = value;
		if (!names.has(m[1])) names.set(m[1], []);
		names.get(m[1]).push([labels, Number(m[3])]);
	}
	return names;
}

const total = (figures, name) => (figures.get(name) || []).reduce((sum, [, value]) => sum + value, 0);

// latency is a quantile of the commands between two looks, from the differences of their histograms: the bound of its bucket.
function latency(before, now, quantile) {
	// cumulative has, for each command, its bounds and how many calls took no longer. They begin and end with the bounds in use.
	const cumulative = (figures) => {
		const commands = new Map();
		for (const [labels, value] of figures.get("redis_commands_latencies_usec_bucket") || []) {
			if (labels.le === "+Inf") continue;
			if (!commands.has(labels.cmd)) commands.set(labels.cmd, []);
			commands.get(labels.cmd).push([Number(labels.le), value]);
		}
		return commands;
	};
	const earlier = cumulative(before), single = [];
	for (const [cmd, list] of cumulative(now)) {
		let below = 0;
		for (const [bound, sum] of list) {
			const then = (earlier.get(cmd) || []).findLast(([b]) => b <= bound);
			const since = sum - (then ? then[1] : 0);
			if (since > below) single.push([bound, since - below]);
			below = Math.max(below, since);
		}
	}
	single.sort((a, b) => a[0] - b[0]);
	const all = single.reduce((sum, [, n]) => sum + n, 0);
	let sum = 0;
	for (const [bound, n] of single) if ((sum += n) >= quantile * all) return bound;
	return 0;
}

// The limit maxmemory, 0 for none, and bytes of it.
let limit = 0;
const ofLimit = (n) => size(n) + (limit > 0 ? " of " + size(limit) : "");

// The cards: what each shows of two looks that lie so many seconds apart.
const rate = (name) => (before, now, seconds) => (total(now, name) - total(before, name)) / seconds;
const cards = [
	["commands per second", rate("redis_commands_processed_total"), count],
	["p99, at most", (before, now) => latency(before, now, 0.99), micros],
	["reads that hit", (before, now) => {
		const hits = total(now, "redis_keyspace_hits_total") - total(before, "redis_keyspace_hits_total");
		const misses = total(now, "redis_keyspace_misses_total") - total(before, "redis_keyspace_misses_total");
		return hits + misses > 0 ? (100 * hits) / (hits + misses) : NaN;
	}, (n) => (Number.isNaN(n) ? "–" : n.toFixed(0) + " %")],
	["keys", (before, now) => total(now, "stave_keys"), count],
	["clients", (before, now) => total(now, "redis_connected_clients"), count],
	["memory of the process", (before, now) => total(now, "redis_memory_used_rss_bytes"), size],
	["counted by maxmemory", (before, now) => {
		limit = total(now, "redis_memory_max_bytes");
		return total(now, "stave_maxmemory_counted_bytes");
	}, ofLimit],
	["received per second", rate("redis_net_input_bytes_total"), size],
	["sent per second", rate("redis_net_output_bytes_total"), size],
	["log written per second", rate("stave_commit_bytes_total"), size],
	["processor", (before, now, seconds) => 100 * (rate("redis_cpu_user_seconds_total")(before, now, seconds) + rate("redis_cpu_sys_seconds_total")(before, now, seconds)), (n) => n.toFixed(0) + " %"],
].map(([title, of, show]) => {
	const number = el("b", {}, "–");
	const line = shape("path");
	const picture = shape("svg", { viewBox: `0 0 ${points - 1} 36`, preserveAspectRatio: "none", "aria-hidden": "true" }, line);
	$("cards").append(el("div", { className: "card" }, el("span", {}, title), number, picture));
	const values = [];
	return (before, now, seconds) => {
		const value = of(before, now, seconds);
		number.textContent = show(value);
		values.push(Number.isNaN(value) ? 0 : value);
		if (values.length > points) values.shift();
		const most = Math.max(...values, 1e-9);
		line.setAttribute("d", values.map((v, i) => (i ? "L" : "M") + (points - values.length + i) + " " + (34 - (32 * v) / most).toFixed(1)).join(""));
	};
});

function table(id, head, rows, none) {
	const columns = head.map((h) => h.replace(/^#/, ""));
	const isNumber = head.map((h) => h.startsWith("#"));
	const cell = (name, text, i) => el(name, { className: isNumber[i] ? "n" : "" }, text);
	$(id).replaceChildren();
	if (rows.length === 0) return $(id).append(el("tr", {}, el("td", {}, none)));
	$(id).append(el("tr", {}, ...columns.map((c, i) => cell("th", c, i))), ...rows.map((row) => el("tr", {}, ...row.map((c, i) => cell("td", c, i)))));
}

// showCommands lists what has been called most since the last look.
function showCommands(before, now, seconds) {
	const of = (figures, name) => new Map((figures.get(name) || []).map(([labels, value]) => [labels.cmd, value]));
	const calls = [of(before, "redis_commands_total"), of(now, "redis_commands_total")];
	const time = [of(before, "redis_commands_duration_seconds_total"), of(now, "redis_commands_duration_seconds_total")];
	const rows = [];
	for (const [cmd, n] of calls[1]) {
		const called = n - (calls[0].get(cmd) || 0);
		const took = time[1].get(cmd) - (time[0].get(cmd) || 0);
		if (called > 0) rows.push([called, [cmd, count(called / seconds), micros((1e6 * took) / called), percent(took, seconds)]]);
	}
	rows.sort((a, b) => b[0] - a[0]);
	table("commands", ["command", "#per second", "#each", "#of the time"], rows.slice(0, 12).map(([, row]) => row), "none since the last look");
}

function showStore(before, now, seconds) {
	const info = (now.get("redis_instance_info") || [[{}, 0]])[0][0];
	$("instance").textContent = `${info.stave_version || ""} · up ${duration(total(now, "redis_uptime_in_seconds"))}`;
	const state = ((now.get("stave_state") || []).find(([, is]) => is === 1) || [{ state: "unknown" }])[0].state;
	$("state").textContent = { ok: "takes writes", full: "the disk is full: only deletes", failed: "refuses writes" }[state] || state;
	$("state").className = state === "ok" ? "" : "bad";
	const bytes = total(now, "stave_log_bytes"), live = total(now, "stave_live_bytes");
	$("log").textContent = `· ${size(bytes)} in ${plural(total(now, "stave_segments"), "segment")}, ${percent(live, bytes)} of it live · index ${size(total(now, "stave_index_bytes"))} in memory`;
	const running = total(now, "stave_merge_running") > 0;
	const pairs = [
		["merge", running ? `running: ${percent(total(now, "stave_merge_read_bytes"), total(now, "stave_merge_to_read_bytes"))} read` : total(now, "stave_merge_paused") > 0 ? "paused" : "none runs"],
		["merges since the start", `${count(total(now, "stave_merges_total"))}, ${count(total(now, "stave_merge_failures_total"))} failed`],
		["the last one", total(now, "stave_merges_total") > 0 ? `freed ${size(total(now, "stave_merge_last_reclaimed_bytes"))} in ${micros(1e6 * total(now, "stave_merge_last_seconds"))}` : "–"],
		["keys with a TTL", count(total(now, "redis_db_keys_expiring"))],
		["expired per second", count(rate("redis_expired_keys_total")(before, now, seconds))],
		["expired since the start", count(total(now, "redis_expired_keys_total"))],
	];
	$("merge").replaceChildren(...pairs.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

// bar is a row with a rectangle for each part of a whole.
function bar(name, parts, whole, note) {
	const picture = shape("svg", { viewBox: "0 0 1000 14", preserveAspectRatio: "none", role: "img", "aria-label": `${name}: ${note}` });
	let x = 0;
	for (const [className, part] of parts) {
		const width = whole > 0 ? (1000 * part) / whole : 0;
		picture.append(shape("rect", { class: className, x, width, height: 14 }));
		x += width;
	}
	return el("div", { className: "row" }, el("span", {}, name), picture, el("span", {}, note));
}

function showSegments({ segments }) {
	const most = Math.max(...segments.map((s) => s.bytes), 1);
	const rows = segments.slice(-40).map((s) => {
		const live = Math.min(s.live, s.bytes);
		return bar(s.name, [["live", live], ["dead", s.bytes - live]], most, `${size(s.bytes)}, ${percent(s.bytes - live, s.bytes)} dead${s.sealed ? "" : ", active"}`);
	});
	if (segments.length > 40) rows.unshift(el("p", {}, `and ${segments.length - 40} older ones`));
	$("segments").replaceChildren(...rows);
}

function showTypes({ keys, seen, types }) {
	$("typesof").textContent = seen < keys ? `${plural(keys, "key")}; shares of ${count(seen)} drawn at random` : plural(keys, "key");
	$("types").replaceChildren(...Object.entries(types).sort((a, b) => b[1] - a[1]).map(([name, n]) => bar(name, [["live", n]], seen, percent(n, seen))));
}

function showSlow(list) {
	table("slow", ["when", "#took", "command", "from"], list.map((e) => [new Date(1000 * e.at).toLocaleTimeString(), micros(e.micros), e.args.join(" ").slice(0, 200), e.name || e.address]), "none");
}

// linkOf says how a replica's link to its master is.
function linkOf(f) {
	const master = `${f.master_host}:${f.master_port}`;
	const why = f.master_link_error || "the log says why";
	if (f.replica_stopped === "1") return `differs from its master ${master} and has stopped: ${why}`;
	if (f.master_sync_in_progress === "1") return `everything is loaded from ${master}: ${size(Number(f.master_sync_read_bytes || 0))} so far`;
	if (f.master_link_status !== "up") return `the link to ${master} has been down for ${duration(Number(f.master_link_down_since_seconds))}: ${why}`;
	return `replica of ${master}, which sent something ${duration(Number(f.master_last_io_seconds_ago))} ago`;
}

// showReplication shows the master and the replicas, where there are any.
function showReplication(f) {
	const isReplica = f.role === "slave";
	const orphans = Number(f.orphan_files);
	$("replicas").hidden = !isReplica && f.repl_backlog_active !== "1" && orphans === 0;
	$("link").textContent = isReplica ? linkOf(f) : "";
	$("link").className = isReplica && f.master_link_status !== "up" ? "bad" : "";
	const rows = [];
	for (let i = 0; f["slave" + i]; i++) {
		const r = Object.fromEntries(f["slave" + i].split(",").map((pair) => pair.split(/=(.*)/)));
		rows.push([`${r.ip}:${r.port}`, r.state, r.state === "online" ? size(Math.max(0, f.master_repl_offset - r.offset)) : "–", r.state === "online" ? duration(Number(r.lag)) : "–"]);
	}
	table("replication", ["replica", "state", "#behind", "#heard of"], rows, "no replica is connected");
	$("backlog").textContent = f.repl_backlog_active === "1" ? `${size(Number(f.repl_backlog_histlen))} of ${size(Number(f.repl_backlog_size))} kept for replicas that are away` : "";
	$("orphans").textContent = orphans === 0 ? "" : orphans < 0 ? "the directory orphans of the store cannot be read" : `${plural(orphans, "file")} with commits that a new master did not have: stave orphans lists them`;
}

function showClients({ clients, total }) {
	$("clientcount").textContent = total > clients.length ? `the first ${clients.length} of ${total}` : `${total}`;
	table("clients", ["id", "address", "name", "user", "#age", "#idle", "db", "last command", "#memory"],
		clients.map((c) => [c.id, c.addr, c.name || "", c.user || "", duration(Number(c.age)), duration(Number(c.idle)), c.db, c.cmd, size(Number(c["tot-mem"] || 0))]), "none");
}

class Refused extends Error {}

// ask requests JSON. An error of the server is thrown with its text.
async function ask(path, query = {}) {
	const reply = await fetch("/api/" + path + "?" + new URLSearchParams(query));
	const body = await reply.json();
	if (!reply.ok) throw new Refused(body.error);
	return body;
}

let cursor = "0";

async function find(more) {
	const query = Object.fromEntries(new FormData($("find")));
	if (!more) {
		cursor = "0";
		$("keys").replaceChildren(el("tr", {}, el("th", {}, "key"), el("th", {}, "type"), el("th", { className: "n" }, "ttl"), el("th", { className: "n" }, "memory")));
	}
	try {
		const page = await ask("keys", { ...query, cursor });
		cursor = page.cursor;
		for (const k of page.keys) {
			const open = el("button", { type: "button" }, k.name || '""');
			open.addEventListener("click", () => show(query.db, k.key));
			$("keys").append(el("tr", {}, el("td", {}, open), el("td", {}, k.type), el("td", { className: "n" }, k.ttl < 0 ? "–" : duration(k.ttl / 1000)), el("td", { className: "n" }, size(k.bytes))));
		}
		$("more").hidden = cursor === "0";
	} catch (error) {
		$("keys").append(el("tr", {}, el("td", { className: "bad", colSpan: 4 }, error.message)));
	}
}

async function show(db, key) {
	try {
		const v = await ask("key", { db, key });
		if (v.type === "none") return $("value").replaceChildren(el("p", {}, `${v.name} has gone`));
		const unit = v.type === "string" ? size(v.length) : plural(v.length, "element");
		const rows = el("table", {}, el("tr", {}, ...v.head.map((h) => el("th", {}, h))), ...v.rows.map((row) => el("tr", {}, ...row.map((c) => el("td", {}, el("code", {}, c))))));
		$("value").replaceChildren(el("h2", {}, v.name), el("p", {}, `${v.type} (${v.encoding}), ${unit}${v.ttl < 0 ? "" : `, expires in ${duration(v.ttl / 1000)}`}`), rows, el("p", {}, v.more ? "and more" : ""));
	} catch (error) {
		$("value").replaceChildren(el("p", { className: "bad" }, error.message));
	}
}

$("find").addEventListener("submit", (event) => {
	event.preventDefault();
	find(false);
	every.types();
});
$("more").addEventListener("click", () => find(true));

let before, beforeAt;

async function figures() {
	const reply = await fetch("/metrics");
	if (!reply.ok) throw new Error(`/metrics: ${reply.status}`);
	const now = parse(await reply.text()), at = performance.now();
	if (before) {
		const seconds = (at - beforeAt) / 1000;
		for (const card of cards) card(before, now, seconds);
		showCommands(before, now, seconds);
		showStore(before, now, seconds);
	}
	[before, beforeAt] = [now, at];
}

// part asks for one part of the page and shows it, or what the server says against it.
const part = (path, id, showIt, query = () => ({})) => async () => {
	try {
		showIt(await ask(path, query()));
	} catch (error) {
		if (!(error instanceof Refused)) throw error;
		$(id).replaceChildren(el("span", { className: "bad" }, error.message));
	}
};

const every = {
	figures,
	segments: part("segments", "segments", showSegments),
	types: part("types", "types", showTypes, () => ({ db: $("find").elements.db.value })),
	slow: part("slowlog", "slow", showSlow),
	clients: part("clients", "clients", showClients),
	replication: part("replication", "replication", showReplication),
};

// repeat does a thing again and again, one at a time, and not while nobody looks.
async function repeat(task, milliseconds) {
	for (;;) {
		if (!document.hidden) {
			try {
				await task();
			} catch {
				$("state").textContent = "no answer from the server";
				$("state").className = "bad";
			}
		}
		await new Promise((resolve) => setTimeout(resolve, milliseconds));
	}
}

repeat(every.figures, 1000);
repeat(every.segments, 3000);
repeat(every.types, 10000);
repeat(every.slow, 5000);
repeat(every.clients, 5000);
repeat(every.replication, 2000);
find(false);
