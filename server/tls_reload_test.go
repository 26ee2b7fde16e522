package server_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/server"
)

// TestReloadSaysWhatItDid: a reload of certificates is in the log, with the name and the end of the new one, which
// /metrics has too; one that fails names the file, and says that the old one stays.
func TestReloadSaysWhatItDid(t *testing.T) {
	a := newAuthority(t)
	certFile, keyFile := a.issue("server", time.Hour)
	caFile, _ := a.issue("roots", time.Hour)
	secure, err := server.NewTLS(server.TLSOptions{CertFile: certFile, KeyFile: keyFile, CACertFile: caFile})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	v := newServer(t, openStore(t), &server.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if strings.Contains(v.Metrics(), "stave_tls_certificate") {
		t.Error("a figure of a certificate, and there is none")
	}
	v.ReloadTLS(secure)
	reload := func(wantErr string, wantLog ...string) {
		t.Helper()
		log.Reset()
		err := v.Reload()
		if wantErr == "" && err != nil || wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)) {
			t.Errorf("%v, want %q", err, wantErr)
		}
		for _, text := range wantLog {
			if !strings.Contains(log.String(), text) {
				t.Errorf("%q lacks %q", &log, text)
			}
		}
		if (wantErr != "" || len(wantLog) == 0) && log.Len() > 0 {
			t.Errorf("logged: %s", &log)
		}
		line := fmt.Sprintf("stave_tls_certificate_not_after_seconds %g\n", float64(secure.Certificate().NotAfter.Unix()))
		if !strings.Contains(v.Metrics(), line) {
			t.Errorf("/metrics lacks %q", line)
		}
	}
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	reload("", "neither settings nor certificates have changed")
	newCert, newKey := a.issue("renewed", 48*time.Hour)
	old := secure.Certificate().NotAfter
	move(newCert, certFile)
	reload(certFile + ", " + keyFile + ": tls: private key does not match public key; the certificate of before stays, valid to " + old.UTC().Format(time.RFC3339))
	if !secure.Certificate().NotAfter.Equal(old) {
		t.Error("the old certificate has gone")
	}
	move(newKey, keyFile)
	reload("", "certificate reloaded", "file="+certFile, "name=localhost", "valid to\"="+secure.Certificate().NotAfter.UTC().Format(time.RFC3339)[:4])
	if !secure.Certificate().NotAfter.After(old.Add(24 * time.Hour)) {
		t.Error("the old certificate is served")
	}
	otherRoots, _ := a.issue("others", time.Hour)
	move(otherRoots, caFile)
	reload("", "certificate reloaded")
	if err := os.WriteFile(caFile, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	reload(caFile + " has no certificate in PEM; the certificate of before stays")
	if err := os.Remove(keyFile); err != nil {
		t.Fatal(err)
	}
	reload(keyFile + ": no such file or directory; the certificate of before stays")
}
