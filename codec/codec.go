package codec

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"reflect"
)

// Codec turns values into bytes and back. Its methods may be called from any goroutine.
type Codec interface {
	// Marshal returns v, which is of the handle's type, in bytes.
	Marshal(v any) ([]byte, error)
	// Unmarshal makes of v, which points to a zero value of the handle's type, what data says. It may keep data, and
	// must not change it.
	Unmarshal(data []byte, v any) error
}

// JSON is the codec of a handle that has none: encoding/json. Other programs can read it, and a struct may gain and
// lose fields.
var JSON Codec = jsonCodec{}

// Gob is encoding/gob. It can say what JSON cannot (NaN, maps with any keys, registered types in interfaces), but only
// Go reads it, and each value carries a description of its type.
var Gob Codec = gobCodec{}

// EncodeError says that a codec refuses a value. Nothing has been written.
type EncodeError struct {
	Type reflect.Type // of the handle's values
	Err  error        // the codec's
}

func (e *EncodeError) Error() string { return fmt.Sprintf("codec: encoding a %v: %v", e.Type, e.Err) }

// Unwrap returns the codec's error.
func (e *EncodeError) Unwrap() error { return e.Err }

// DecodeError says that a codec cannot make a value of stored bytes.
type DecodeError struct {
	Type reflect.Type // of the handle's values
	Data []byte       // the stored bytes: the only copy of an element that has been removed from a list
	Err  error        // the codec's
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("codec: decoding %d bytes into a %v: %v", len(e.Data), e.Type, e.Err)
}

// Unwrap returns the codec's error.
func (e *DecodeError) Unwrap() error { return e.Err }

type jsonCodec struct{}

func (jsonCodec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (jsonCodec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

type gobCodec struct{}

func (gobCodec) Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(v)
	return b.Bytes(), err
}

func (gobCodec) Unmarshal(data []byte, v any) error {
	return gob.NewDecoder(bytes.NewReader(data)).Decode(v)
}

// orJSON is the codec of a handle.
func orJSON(c Codec) Codec {
	if c == nil {
		return JSON
	}
	return c
}

func encode[T any](c Codec, v T) ([]byte, error) {
	data, err := orJSON(c).Marshal(v)
	if err != nil {
		return nil, &EncodeError{reflect.TypeFor[T](), err}
	}
	return data, nil
}

// encodeAll encodes all values before any is written.
func encodeAll[T any](c Codec, values []T) ([][]byte, error) {
	all := make([][]byte, len(values))
	for i, v := range values {
		data, err := encode(c, v)
		if err != nil {
			return nil, err
		}
		all[i] = data
	}
	return all, nil
}

// decode returns the zero value with an error, also where the codec has filled in a part.
func decode[T any](c Codec, data []byte) (T, error) {
	var v, none T
	if err := orJSON(c).Unmarshal(data, &v); err != nil {
		return none, &DecodeError{reflect.TypeFor[T](), data, err}
	}
	return v, nil
}

// decoded is decode after a read that may have failed.
func decoded[T any](c Codec, data []byte, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return decode[T](c, data)
}
