// Package jsonl writes the keys and the libraries of functions of a store as lines of JSON and reads them back.
//
// One line is one key with everything it holds, or a library:
//
//	{"key":"greeting","type":"string","value":"hi"}
//	{"key":"user:1","type":"hash","value":{"name":"Ada"},"expire_at_ms":1900000000000}
//	{"key":"user:2","type":"hash","value":{"name":"Bob","code":"7"},"field_expire_at_ms":{"code":1900000000000}}
//	{"key":"jobs","type":"list","value":["a","b"]}
//	{"key":"tags","type":"set","value":["x","y"]}
//	{"key":"board","type":"zset","value":[["Ada",1.5],["Bob","inf"]]}
//	{"key":"log","type":"stream","value":{"last":"7-0","deleted":"0-0","added":1,"entries":[["7-0","temp","21"]]}}
//	{"db":3,"keyB64":"//4=","type":"string","valueB64":"AAE="}
//	{"library":"mylib","value":"#!lua name=mylib\nredis.register_function('f', function() return 1 end)"}
//
// The members may stand in any order:
//
//   - "key", or "keyB64" if the key is not UTF-8.
//   - "type": string, hash, list, set, zset or stream. An entry of a stream is its id, then its fields and values in turns.
//   - "value", or "valueB64" for a string that is not UTF-8, or long and shorter so. Within a collection
//     such a string is {"b64":"..."}. A number may stand for a string: its digits
//     are stored as written.
//   - "db": the namespace. Default: 0, or the one of the import's options.
//   - "expire_at_ms": the key's deadline, a Unix time in milliseconds. An import
//     also takes "ttl_ms", milliseconds from now.
//   - "field_expire_at_ms": the deadlines of a hash's fields.
//   - "library": the name of a library, instead of "key"; its text is the value, as that of a string is. It has no other members.
//
// A hash with a field name that is not UTF-8 is an array of [field, value] pairs,
// since the name of a JSON member must be text, and so are its deadlines.
//
// [Export] and [Import] handle whole files. An [Importer] is for a program that has
// the lines from elsewhere, or mixes them with other work.
//
// # Guarantees
//
// Every byte survives: an import stores exactly the exported data. A line replaces the content of its key, or the
// library. A line that is ambiguous is refused instead of repaired: invalid UTF-8, a name that appears twice, an
// unknown member (a misspelt ttl_ms would otherwise be lost without a word).
//
// # Caveats
//
// The export of a store in use has each key as it was when its page of keys was read, not all keys at one
// moment. For that, export a snapshot (db.Store.Snapshot), a store opened with ReadOnly, or a backup.
//
// An import commits up to a thousand lines at a time. If it fails or is
// interrupted, the lines before are stored. A collection of more than 16 MiB takes
// several commits; an import killed in between leaves a part of it, without its
// deadline, until the line is imported again.
//
// A line is at most 1 GiB long: an import refuses a longer one, which a collection of a GiB may make.
//
// This package is separate from db so that a program that only embeds a store does not link a JSON library.
package jsonl
