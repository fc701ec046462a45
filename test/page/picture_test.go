package page

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/cniscope/cniscope/test/harness"
)

// pictureMax bounds the README's picture, in bytes: the repository keeps each version.
const pictureMax = 200 << 10

// CNISCOPE_PICTURE=FILE saves the README's picture (make docs-picture).
func TestPicture(t *testing.T) {
	b := recorded(t)
	b.do(prefers("light"), chromedp.EmulateViewport(1200, 1000))
	bottom := ask[float64](b, "document.querySelector('article.slow').getBoundingClientRect().bottom + 12")
	b.do(chromedp.EmulateViewport(1200, int64(bottom)))
	picture := small(t, result(b, chromedp.CaptureScreenshot()))
	if len(picture) > pictureMax || len(picture) < pictureMax/20 {
		t.Errorf("%d bytes", len(picture))
	}
	if file := os.Getenv("CNISCOPE_PICTURE"); file != "" {
		if err := os.WriteFile(file, picture, 0o644); err != nil {
			t.Error(err)
		}
	}
}

// small reduces a picture to its 256 most frequent colors.
func small(t *testing.T, data []byte) []byte {
	t.Helper()
	full := harness.Must(png.Decode(bytes.NewReader(data)))(t)
	counts := map[color.RGBA]int{}
	for y := full.Bounds().Min.Y; y < full.Bounds().Max.Y; y++ {
		for x := full.Bounds().Min.X; x < full.Bounds().Max.X; x++ {
			counts[color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)]++
		}
	}
	often := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), bytes.Compare([]byte{a.R, a.G, a.B}, []byte{b.R, b.G, b.B}))
	})
	var palette color.Palette
	for _, c := range often[:min(len(often), 256)] {
		palette = append(palette, c)
	}
	few := image.NewPaletted(full.Bounds(), palette)
	draw.Draw(few, few.Bounds(), full, full.Bounds().Min, draw.Src)
	var out bytes.Buffer
	harness.Check(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, few))
	return out.Bytes()
}
