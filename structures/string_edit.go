package structures

// GetAndDelete returns the value and deletes the key; ok is false if the key
// does not exist. O(length).
func (s String) GetAndDelete() (value []byte, ok bool, err error) {
	if value, ok, err = s.Get(nil); err != nil || !ok {
		return nil, false, err
	}
	_, err = deleteKey(s.Txn, s.Key)
	return value, true, err
}

// GetAndExpire appends the value to dst and gives the key a deadline in Unix
// milliseconds, which deletes it if it is not after now. It returns dst as it
// was, and false, if the key does not exist. O(length).
func (s String) GetAndExpire(dst []byte, deadline, now int64) ([]byte, bool, error) {
	if deadline <= 0 {
		return dst, false, ErrExpireTime
	}
	value, ok, err := s.Get(dst)
	if err != nil || !ok {
		return dst, false, err
	}
	if deadline <= now {
		_, err = deleteKey(s.Txn, s.Key)
	} else {
		err = notifyUnless(s.Txn, EventExpire, s.Key, s.Txn.SetDeadline(s.Key, deadline))
	}
	return value, true, err
}

// GetAndPersist appends the value to dst and takes the deadline of the key away.
// It returns dst as it was, and false, if the key does not exist. O(length).
func (s String) GetAndPersist(dst []byte) ([]byte, bool, error) {
	value, ok, err := s.Get(dst)
	if err != nil || !ok {
		return dst, false, err
	}
	_, err = persist(s.Txn, s.Key)
	return value, true, err
}

// SetRange overwrites the bytes of the value from offset on, with zeros before
// them where the value was shorter, and returns the new length; the deadline
// stays. Nothing is written for an empty part. O(length of the part), of a short
// string O(length).
func (s String) SetRange(offset int64, part []byte) (int, error) {
	if offset < 0 {
		return 0, ErrOffset
	}
	c, err := s.find()
	if err != nil {
		return 0, err
	}
	n, err := s.len(&c)
	switch {
	case err != nil:
		return 0, err
	case len(part) == 0:
		return n, nil
	case offset > MaxString-int64(len(part)):
		return 0, ErrTooLong
	}
	return max(n, int(offset)+len(part)), notifyUnless(s.Txn, EventSetRange, s.Key, s.edit(&c, n, int(offset), part))
}
