package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
)

func Example() {
	main()
	// Output:
	// ann takes "resize a.png" and dies
	// recovered: 1
	// bob does "resize a.png"
	// bob does "resize b.png"
}

// Many workers share the jobs: each is done once, and none is left with anybody.
func TestWorkersShareTheJobs(t *testing.T) {
	store, err := db.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	const jobs, workers = 200, 4
	finished := make(chan string, jobs)
	ctx, stop := context.WithCancel(t.Context())
	errs := make(chan error, workers)
	for w := range workers {
		go func() {
			name := fmt.Sprint(w)
			for {
				job, err := take(ctx, store, name)
				if err != nil {
					errs <- err
					return
				}
				if err := done(store, name, job); err != nil {
					errs <- err
					return
				}
				finished <- string(job)
			}
		}()
	}
	var want, got []string
	for i := range jobs {
		want = append(want, fmt.Sprintf("%03d", i))
		if _, err := store.List(waiting).PushBack([]byte(want[i])); err != nil {
			t.Fatal(err)
		}
	}
	for range jobs {
		select {
		case job := <-finished:
			got = append(got, job)
		case <-time.After(time.Minute):
			t.Fatal("jobs are missing")
		}
	}
	stop()
	for range workers {
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) || store.Len() != 0 {
		t.Errorf("%d jobs done, %d keys left", len(got), store.Len())
	}
}

// The jobs of a dead worker come back in their old order, before those that wait.
func TestRecover(t *testing.T) {
	store, err := db.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := store.List(waiting).PushBack([]byte("a"), []byte("b"), []byte("c")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := take(t.Context(), store, "ann"); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := recoverJobs(store, "ann"); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	left, err := store.List(waiting).Range(0, -1)
	if err != nil || fmt.Sprintf("%s", left) != "[a b c]" {
		t.Errorf("%s, %v", left, err)
	}
	if n, err := recoverJobs(store, "ann"); n != 0 || err != nil {
		t.Errorf("once more: %d, %v", n, err)
	}
}
