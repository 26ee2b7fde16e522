// Package dashboard is a page for people who look after a server: throughput, latency, segments, merges, slow commands,
// clients, and a browser of the keys that cannot change them.
//
// The page is three files without a build step, under a content security policy that allows nothing else. Its figures
// come from /metrics; the rest it asks for below /api, and each such request is a Client of its own: it has the rights
// of the user whose name and password the request carries, and no others. /backup sends the store as an archive.
package dashboard
