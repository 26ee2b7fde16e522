package structures

// HyperLogLog is a string seen as a sketch that estimates how many different
// elements were added to it, within 0.81 % (one standard deviation), in 12 KiB at
// most. The string is Redis's own representation; what changes it writes it
// whole.
type HyperLogLog struct {
	Txn Txn
	Key string
}

// read returns a copy of the sketch; ok says whether the key exists.
func (l HyperLogLog) read() (s sketch, ok bool, err error) {
	value, ok, err := String(l).Get(nil)
	if err != nil || !ok {
		return nil, false, err
	}
	return value, true, checkSketch(value)
}

// Add adds elements, and says whether that changed the sketch; a key that does
// not exist is made, also for no element. The deadline stays. O(1) an element,
// and 12 KiB written at most.
func (l HyperLogLog) Add(elements [][]byte) (bool, error) {
	s, ok, err := l.read()
	if err != nil {
		return false, err
	}
	changed := !ok
	if !ok {
		s = newSketch()
	}
	for _, element := range elements {
		index, value := registerOf(element)
		var raised bool
		if s, raised, err = s.raise(index, value); err != nil {
			return false, err
		}
		changed = changed || raised
	}
	if !changed {
		return false, nil
	}
	s.invalidate()
	return true, notifyUnless(l.Txn, EventPFAdd, l.Key, String(l).put(s))
}

// CountHyperLogLogs estimates how many different elements the sketches at the
// keys have together; one that does not exist has none. A count that a sketch of
// Redis's has cached is used, but none is written back: a read stays a read. O(1)
// a key, with a large constant: 16384 registers.
func CountHyperLogLogs(t Txn, keys []string) (uint64, error) {
	if len(keys) != 1 {
		largest, _, err := mergeSketches(t, keys)
		if err != nil {
			return 0, err
		}
		var h histogram
		for _, value := range largest {
			h[value]++
		}
		return h.estimate(), nil
	}
	s, ok, err := HyperLogLog{Txn: t, Key: keys[0]}.read()
	if err != nil || !ok {
		return 0, err
	}
	if n, ok := s.cached(); ok {
		return n, nil
	}
	h, err := s.histogram()
	if err != nil {
		return 0, err
	}
	return h.estimate(), nil
}

// mergeSketches returns the union of the sketches at the keys, and whether one of
// them is dense.
func mergeSketches(t Txn, keys []string) (largest *[registers]uint8, dense bool, err error) {
	largest = new([registers]uint8)
	for _, key := range keys {
		s, ok, err := HyperLogLog{Txn: t, Key: key}.read()
		if err != nil {
			return nil, false, err
		}
		if !ok {
			continue
		}
		dense = dense || s.isDense()
		if err := s.maxInto(largest); err != nil {
			return nil, false, err
		}
	}
	return largest, dense, nil
}

// MergeHyperLogLogs adds to the sketch at dest, made if it does not exist, what
// the sketches at the keys have. The deadline stays. O(1) a key, with a large
// constant: 16384 registers.
func MergeHyperLogLogs(t Txn, dest string, keys []string) error {
	largest, dense, err := mergeSketches(t, append([]string{dest}, keys...))
	if err != nil {
		return err
	}
	s, ok, err := HyperLogLog{Txn: t, Key: dest}.read()
	if err != nil {
		return err
	}
	if !ok {
		s = newSketch()
	}
	if dense {
		if s, err = s.dense(); err != nil {
			return err
		}
	}
	for i, value := range largest {
		if value == 0 {
			continue
		}
		if s, _, err = s.raise(i, int(value)); err != nil {
			return err
		}
	}
	s.invalidate()
	return notifyUnless(t, EventPFAdd, dest, String{Txn: t, Key: dest}.put(s))
}
