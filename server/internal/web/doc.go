// Package web is a server's HTTP endpoint: GET / (the dashboard), /backup (the store as a tar archive), /metrics (all
// figures, in the text format of Prometheus), /healthz (200 while the process answers) and /readyz (200 while the store
// takes writes, or follows the process that does, 503 otherwise).
//
// It is for a few scrapers of its own machine, which the listener must see to. The dashboard and /backup ask for the
// password of a user, the others for none. A request for another host name than that of this machine is refused, so that
// no web page can read the figures through a browser.
// Pages and figures have limits of their own: scrapers and probes do not wait for pages.
package web
