package replication_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/internal/test/redisserver"
)

// certificate makes a certificate that is its own root, for no name, and returns the files of it and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a master"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	bytes, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: bytes}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// TestMasterWithTLS: the link is encrypted, and a master that another root has signed is none.
func TestMasterWithTLS(t *testing.T) {
	cert, key := certificate(t)
	r := redisserver.StartMaster(t, "", "--port", "0", "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no", "--tls-replication", "yes", "--tls-port", redisserver.FreePort(t))
	master := dial(t, r.Socket)
	master.must("SET", "a", "1")
	port := strings.Fields(strings.Trim(master.must("CONFIG", "GET", "tls-port"), "[]"))[1]
	address, _ := serve(t, dbtest.New(t), configured(t, "tls-replication", "yes", "tls-ca-cert-file", cert, "replicaof", "127.0.0.1:"+port))
	replica := dial(t, address)
	awaitCaughtUp(t, master, replica)
	wantSame(t, master, replica)
	other, _ := certificate(t)
	for _, settings := range [][]string{{"tls-ca-cert-file", other}, {}} { // of another root, or of the system's
		settings = append(settings, "tls-replication", "yes", "replicaof", "127.0.0.1:"+port)
		address, _ := serve(t, dbtest.New(t), configured(t, settings...))
		replica := dial(t, address)
		await(t, "the link says why", func() bool { return strings.Contains(replica.info("replication", "master_link_error"), "certificate") })
	}
}
