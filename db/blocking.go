package db

import "context"

// The methods of this file wait for an element to take. Waiters for the same key are served first come, first served.
// On a handle of a transaction they do not wait, for no element can arrive while it runs.

// PopFrontWait is PopFront that waits for an element while the list does not exist. It ends with the error of ctx, and
// with ErrWrongType if the key holds another type when it is called. In a transaction it does not wait: ErrNotFound.
func (l List) PopFrontWait(ctx context.Context) ([]byte, error) { return l.popWait(ctx, Front) }

// PopBackWait is PopBack that waits for an element while the list does not exist, as PopFrontWait does. In a
// transaction it does not wait: ErrNotFound.
func (l List) PopBackWait(ctx context.Context) ([]byte, error) { return l.popWait(ctx, Back) }

func (l List) popWait(ctx context.Context, end End) (value []byte, err error) {
	err = l.await(ctx, Wait{Keys: []string{l.key}, Type: TypeList, Do: func(tx *Tx, key string) (err error) {
		value, err = tx.List(key).pop(end)
		return err
	}})
	return owned(value, err)
}

// MoveWait is Move that waits for an element while the list does not exist, as PopFrontWait does. In a transaction it
// does not wait: ErrNotFound.
func (l List) MoveWait(ctx context.Context, to string, from, into End) (value []byte, err error) {
	w := Wait{Keys: []string{l.key}, Type: TypeList, Others: []string{to}}
	w.Do = func(tx *Tx, key string) (err error) {
		value, err = tx.List(key).Move(to, from, into)
		return err
	}
	err = l.await(ctx, w)
	return owned(value, err)
}

// PopFirstWait is PopFirst that waits while none of the lists exists, as List.PopFrontWait does. In a transaction it
// does not wait: ErrNotFound.
func (k Keyspace) PopFirstWait(ctx context.Context, end End, n int, keys ...string) (key string, values [][]byte, err error) {
	err = k.await(ctx, Wait{Keys: keys, Type: TypeList, Do: func(tx *Tx, from string) (err error) {
		key, values, err = tx.Keyspace().PopFirst(end, n, from)
		return err
	}})
	if err != nil {
		return "", nil, err
	}
	return key, values, nil
}

// PopMinWait removes and returns the member with the lowest score, and waits for one while the sorted set does not
// exist, as List.PopFrontWait does. In a transaction it does not wait: ErrNotFound.
func (z SortedSet) PopMinWait(ctx context.Context) (Scored, error) { return z.popWait(ctx, false) }

// PopMaxWait removes and returns the member with the highest score, and waits for one while the sorted set does not
// exist, as List.PopFrontWait does. In a transaction it does not wait: ErrNotFound.
func (z SortedSet) PopMaxWait(ctx context.Context) (Scored, error) { return z.popWait(ctx, true) }

func (z SortedSet) popWait(ctx context.Context, highest bool) (Scored, error) {
	_, members, err := Keyspace{handle: z.handle}.PopFirstScoredWait(ctx, highest, 1, z.key)
	if err != nil {
		return Scored{}, err
	}
	return members[0], nil
}

// PopFirstScoredWait is PopFirstScored that waits while none of the sorted sets exists, as List.PopFrontWait does. In a
// transaction it does not wait: ErrNotFound.
func (k Keyspace) PopFirstScoredWait(ctx context.Context, highest bool, n int, keys ...string) (key string, members []Scored, err error) {
	err = k.await(ctx, Wait{Keys: keys, Type: TypeSortedSet, Do: func(tx *Tx, from string) (err error) {
		key, members, err = tx.Keyspace().PopFirstScored(highest, n, from)
		return err
	}})
	if err != nil {
		return "", nil, err
	}
	return key, members, nil
}

// ReadWait returns up to count entries after an id, all if count is 0, and waits for one while there is none. Entries
// stay: everyone who waits for them gets them. In a transaction it does not wait: ErrNotFound.
func (s Stream) ReadWait(ctx context.Context, after StreamID, count int) (entries []StreamEntry, err error) {
	w := Wait{Keys: []string{s.key}, Type: TypeStream}
	w.Ready = func(tx *Tx, key string) bool {
		some, err := tx.Stream(key).HasAfter(after)
		return some || err != nil // which Do returns
	}
	w.Do = func(tx *Tx, key string) (err error) {
		entries, err = tx.Stream(key).Range(after.Next(), MaxStreamID, count)
		return err
	}
	err = s.await(ctx, w)
	return owned(entries, err)
}

// await is Await with the handle's store, or Try with its transaction.
func (h handle) await(ctx context.Context, w Wait) error {
	if h.tx == nil {
		view := &Store{core: h.store.core, ns: h.ns}
		return view.Await(ctx, w)
	}
	if err := h.tx.checkWrite(); err != nil {
		return err
	}
	return h.tx.Try(w)
}
