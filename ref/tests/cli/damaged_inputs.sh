#!/bin/bash
# Damaged inputs and impossible outputs: exit 1, one line naming the file, the
# tensor or the offset and what was expected, nothing left behind. The last
# part holds sizes that look wrong and work.
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"

# ---- making files --------------------------------------------------------------
byte() { printf "\\x$(printf %02x "$1")"; }
le8() { # 64-bit little endian
    local v=$1 i
    for i in 0 1 2 3 4 5 6 7; do byte $(((v >> (8 * i)) & 255)); done
}
zeros() { head -c "$1" /dev/zero; }
st() { # st FILE HEADER DATA_BYTES
    { le8 ${#2}; printf '%s' "$2"; zeros "$3"; } >"$1"
}
header_length() { od -An -tu8 -N8 "$1" | tr -d ' '; }
header() { tail -c +9 "$1" | head -c "$(header_length "$1")"; }
edit() { # edit IN OUT SED: the same data under an edited header
    local h
    h=$(header "$1" | sed -E "$3")
    [ "$h" != "$(header "$1")" ] || fail "edit $2: '$3' changed nothing"
    { le8 ${#h}; printf '%s' "$h"; tail -c +$((9 + $(header_length "$1"))) "$1"; } >"$2"
}
poke() { # poke IN OUT OFFSET BYTES: OFFSET from the start of the data
    cp "$1" "$2"
    printf "$4" | dd of="$2" bs=1 seek=$((8 + $(header_length "$1") + $3)) conv=notrunc 2>/dev/null
}
npy() { # npy FILE HEADER_DICT DATA_BYTES
    local h=$2
    while [ $(((10 + ${#h} + 1) % 64)) != 0 ]; do h+=' '; done
    { printf '\x93NUMPY\x01\x00'; byte $(((${#h} + 1) & 255)); byte $(((${#h} + 1) >> 8))
      printf '%s\n' "$h"; zeros "$3"; } >"$1"
}
f4() { echo "{'descr': '<f4', 'fortran_order': False, 'shape': ($1), }"; }

check "a small KL model" "$vaeref" synth --arch sd15 --div 16 -o kl.safetensors
check "a small Tiny model" "$vaeref" synth --arch taesd --div 16 -o tiny.safetensors
check "latents" "$vaeref" latents --arch sd15 --latent-size 2x2 -o z.npy
check "the undamaged model works" "$vaeref" decode --model kl.safetensors --latents z.npy

m() { # m NAME FILE SUBSTRING...: FILE as the model
    local name=$1 file=$2
    shift 2
    refuses 1 "$name" "$file" "$@" -- decode --model "$file" --latents z.npy -o o.png
}
l() { # the same for latents
    local name=$1 file=$2
    shift 2
    refuses 1 "$name" "${file%%#*}" "$@" -- decode --model tiny.safetensors --latents "$file" -o o.png
}

# ---- safetensors ---------------------------------------------------------------
t='"dtype":"F32","shape":[2]'
: >empty.safetensors
m "empty file" empty.safetensors "is empty"
printf 'abcdefg' >seven.safetensors
m "file shorter than its length field" seven.safetensors "8"
head -c 200 kl.safetensors >cut.safetensors
m "truncated header" cut.safetensors "header"
{ printf '\0\0\0\0\0\0\0\x80'; zeros 64; } >huge.safetensors
m "header length 2^63" huge.safetensors "9223372036854775808"
{ le8 100000001; zeros 64; } >long.safetensors
m "header length beyond the format's limit" long.safetensors "100000001" "limit"
{ le8 0; zeros 8; } >none.safetensors
m "header length 0" none.safetensors "header"
st text.safetensors 'not a header' 8
m "header is not JSON" text.safetensors "'{'"
st array.safetensors '[1,2,3]' 8
m "header is an array" array.safetensors "'{'"
st twice.safetensors "{\"a\":{$t,\"data_offsets\":[0,8]},\"a\":{$t,\"data_offsets\":[8,16]}}" 16
m "duplicate keys" twice.safetensors "duplicate"
st overlap.safetensors "{\"a\":{$t,\"data_offsets\":[0,8]},\"b\":{$t,\"data_offsets\":[4,12]}}" 12
m "overlapping tensors" overlap.safetensors "overlap"
st beyond.safetensors "{\"a\":{$t,\"data_offsets\":[0,8]}}" 4
m "offsets beyond the file" beyond.safetensors "'a'"
st back.safetensors "{\"a\":{$t,\"data_offsets\":[8,0]}}" 8
m "offsets backwards" back.safetensors "'a'" "backwards"
st minus.safetensors "{\"a\":{$t,\"data_offsets\":[-8,0]}}" 8
m "negative offset" minus.safetensors "'a'"
st fraction.safetensors "{\"a\":{$t,\"data_offsets\":[0,8.5]}}" 8
m "fractional offset" fraction.safetensors "'a'"
st size.safetensors '{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}' 8
m "bytes do not match type and shape" size.safetensors "'a'" "12"
st hole.safetensors "{\"a\":{$t,\"data_offsets\":[0,8]}}" 24
m "bytes that belong to no tensor" hole.safetensors "16 extra bytes"
edit kl.safetensors dtype.safetensors 's/("decoder\.conv_in\.bias":\{[^}]*"dtype":")F32/\1F99/'
m "unknown element type" dtype.safetensors "decoder.conv_in.bias" "F99"
st negative.safetensors '{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}' 8
m "negative extent" negative.safetensors "'a'"
st overflow.safetensors '{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}}' 8
m "extents whose product overflows" overflow.safetensors "'a'"
st rank.safetensors '{"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]}}' 8
m "nine axes" rank.safetensors "'a'"
st metadata.safetensors "{\"__metadata__\":{\"k\":1},\"a\":{$t,\"data_offsets\":[0,8]}}" 8
m "metadata that is not text" metadata.safetensors "__metadata__"
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 334643268\n' 0 >lfs.safetensors
m "git LFS pointer" lfs.safetensors "LFS"
mkdir folder.safetensors
m "folder instead of a file" folder.safetensors "folder"
m "no such file" absent.safetensors "no such file"
printf 'PK\003\004 a pickled checkpoint, not safetensors' >model.ckpt
m "a pickled checkpoint" model.ckpt "safetensors"
head -c 70000 kl.safetensors >data.safetensors
m "file cut in its data" data.safetensors "70000"

# ---- sharded -------------------------------------------------------------------
echo '{"weight_map":{"decoder.conv_in.weight":"part-1.safetensors"}}' >s1.safetensors.index.json
m "index names a missing shard" s1.safetensors.index.json "part-1.safetensors"
echo '{"weight_map":{"no.such.tensor":"kl.safetensors"}}' >s2.safetensors.index.json
m "index names a tensor its shard lacks" s2.safetensors.index.json "no.such.tensor"
echo '{"weight_map":{"a":"../kl.safetensors"}}' >s3.safetensors.index.json
m "index leaves its folder" s3.safetensors.index.json "../kl.safetensors"
echo '{"weight_map":' >s4.safetensors.index.json
m "index is cut" s4.safetensors.index.json "JSON"
echo '{"metadata":{}}' >s5.safetensors.index.json
m "index without a map" s5.safetensors.index.json "weight_map"

# ---- models --------------------------------------------------------------------
edit kl.safetensors missing.safetensors 's/"decoder\.conv_out\.bias"/"elsewhere.bias"/'
m "missing tensor" missing.safetensors "decoder.conv_out.bias"
edit kl.safetensors extra.safetensors 's/"decoder\.mid_block\.resnets\.1\.conv2\.bias"/"decoder.mid_block.resnets.7.conv2.bias"/'
m "a tensor the architecture has no place for" extra.safetensors "decoder.mid_block.resnets"
edit kl.safetensors shape.safetensors 's/("decoder\.conv_out\.weight":\{[^}]*"shape":\[)3,([0-9]+),3,3/\1\2,3,3,3/'
m "wrong shape" shape.safetensors "decoder.conv_out.weight"
edit kl.safetensors integer.safetensors 's/("decoder\.conv_in\.bias":\{[^}]*"dtype":")F32/\1I32/'
m "integer weights" integer.safetensors "decoder.conv_in.bias"
st other.safetensors '{"transformer.h.0.attn.weight":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}' 8
m "unknown family" other.safetensors "decoder"
st zero.safetensors '{"decoder.conv_in.weight":{"dtype":"F32","shape":[0,4,3,3],"data_offsets":[0,0]}}' 0
m "zero-size tensor" zero.safetensors "decoder.conv_in.weight"
st nothing.safetensors '{}' 0
m "no tensors at all" nothing.safetensors "decoder"
poke kl.safetensors nan.safetensors 0 '\x00\x00\xc0\x7f'
m "NaN weight" nan.safetensors "'decoder." "not finite" "element 0"
poke kl.safetensors inf.safetensors 4 '\x00\x00\x80\xff'
m "infinite weight" inf.safetensors "'decoder." "not finite" "element 1"
edit kl.safetensors unscaled.safetensors 's/"vaeproof\.([a-z_]+)"/"other.\1"/g'
m "4 latent channels and nothing that tells the scaling" unscaled.safetensors "--scaling-factor" "--arch"
refuses 1 "unknown synthetic architecture" "sd9" -- decode --model synth:sd9 --latents z.npy -o o.png
refuses 1 "synthetic width divided away" "div" -- decode --model synth:sd15,div=0 --latents z.npy -o o.png
refuses 1 "unknown synthetic option" "colour" -- decode --model synth:sd15,colour=2 --latents z.npy -o o.png

# ---- config.json -----------------------------------------------------------------
c() { # c NAME JSON SUBSTRING...
    local name=$1
    echo "$2" >config-x.json
    shift 2
    refuses 1 "$name" config-x.json "$@" -- decode --model kl.safetensors --config config-x.json --latents z.npy -o o.png
}
c "config of another class" '{"_class_name":"UNet2DConditionModel"}' UNet2DConditionModel AutoencoderKL
c "config without a class" '{"scaling_factor":0.18215}' _class_name
c "config that is not JSON" '{"_class_name":' "not valid JSON"
c "config with a wrong type" '{"_class_name":"AutoencoderKL","scaling_factor":"big"}' scaling_factor
check "remove" rm config-x.json
refuses 1 "config that is absent" no-config.json "no such file" -- decode --model kl.safetensors --config no-config.json --latents z.npy -o o.png
echo '{"_class_name":"AutoencoderKL","latent_channels":16,"scaling_factor":1.0}' >disagrees.json
refuses 1 "config that contradicts the file" latent 16 4 -- decode --model kl.safetensors --config disagrees.json --latents z.npy -o o.png

# ---- latents ---------------------------------------------------------------------
npy c16.npy "$(f4 '1, 16, 2, 2')" 256
l "wrong channel count" c16.npy "model needs 4 latent channels, latents have 16"
npy r3.npy "$(f4 '4, 2, 2')" 64
l "3-D latents" r3.npy "rank 4 [N,C,H,W]" "[1,4,2,2]"
npy r5.npy "$(f4 '1, 4, 1, 2, 2')" 64
l "5-D latents" r5.npy "rank 4 [N,C,H,W]"
npy r0.npy "$(f4 '')" 4
l "a single number" r0.npy "rank 4"
npy u1.npy "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 4, 2, 2), }" 16
l "integer latents" u1.npy "U8" "F32"
npy axis0.npy "$(f4 '1, 4, 0, 2')" 0
l "an empty axis" axis0.npy "1,4,0,2"
{ head -c -12 z.npy; printf '\x00\x00\xc0\x7f'; zeros 8; } >nan.npy
l "NaN in latents" nan.npy "NaN" "[0,3,0,1]" "element 13"
{ head -c -4 z.npy; printf '\x00\x00\x80\x7f'; } >inf.npy
l "infinity in latents" inf.npy "infinity" "[0,3,1,1]"
: >empty.npy
l "empty .npy" empty.npy "is empty"
printf 'P6 2 2 255 and so on' >magic.npy
l "not a .npy" magic.npy ".npy"
npy fortran.npy "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 4, 2, 2), }" 64
l "Fortran order" fortran.npy "fortran_order"
npy big.npy "{'descr': '>f4', 'fortran_order': False, 'shape': (1, 4, 2, 2), }" 64
l "big endian" big.npy ">f4" "big endian"
npy object.npy "{'descr': '|O', 'fortran_order': False, 'shape': (1, 4, 2, 2), }" 64
l "pickled objects" object.npy "|O" "pickled"
npy short.npy "$(f4 '1, 4, 2, 2')" 60
l ".npy cut in its data" short.npy "truncated" "64"
head -c 40 z.npy >head.npy
l ".npy cut in its header" head.npy "header"
npy dims.npy "$(f4 '4294967296, 4294967296, 4, 4')" 64
l ".npy whose extents overflow" dims.npy "4294967296"
echo '0.1 0.2 0.3' >z.txt
l "latents as text" z.txt "plain text"
mkdir folder.npy
l "latents are a folder" folder.npy "folder"
l "no such latents" absent.npy "no such file"
f='"dtype":"F32","shape":[1,4,2,2]'
st two.safetensors "{\"dog\":{$f,\"data_offsets\":[0,64]},\"cat\":{$f,\"data_offsets\":[64,128]}}" 128
l "two tensors and no name" two.safetensors "#name" "cat F32[1,4,2,2]"
l "a name the file lacks" "two.safetensors#bird" "bird" "cat F32[1,4,2,2]"

# ---- outputs ---------------------------------------------------------------------
T=(decode --model tiny.safetensors --latents z.npy)
refuses 1 "output into a missing folder" "nowhere" -- "${T[@]}" -o nowhere/o.png
mkdir taken.png o_00001.png
refuses 1 "the second picture cannot be written: the first goes too" "o_00001.png" "folder" -- \
    decode --model tiny.safetensors --latents seed:1,2x2,n=2 -o o.png
refuses 1 "output is a folder" "taken.png" "folder" -- "${T[@]}" -o taken.png
refuses 1 "stats into a missing folder" "nowhere" -- "${T[@]}" -o o.png --stats nowhere/s.json
refuses 1 "taps folder is a file" "z.txt" "folder" -- "${T[@]}" --taps z.txt
refuses 1 "taps into a missing folder" "nowhere" -- "${T[@]}" --taps nowhere/taps
ln -s /dev/full full.npy
refuses 1 "disk full from the first byte" "full.npy" "No space left" -- "${T[@]}" -o full.npy
refuses 1 "synth into a missing folder" "nowhere" -- synth --arch taesd --div 16 -o nowhere/a.safetensors
refuses 1 "latents into a missing folder" "nowhere" -- latents --arch sd15 --size 8x8 -o nowhere/z.npy
refuses 1 "convert into a missing folder" "nowhere" -- convert --model kl.safetensors --dtype F16 -o nowhere/a.safetensors
refuses 1 "convert a damaged file" "cut.safetensors" -- convert --model cut.safetensors --dtype F16 -o a.safetensors
refuses 1 "inspect a damaged file" "cut.safetensors" -- inspect --model cut.safetensors
refuses 1 "memory limit" "--memory-limit allows 1.0 KiB" -- "${T[@]}" --memory-limit 1KiB -o o.png
refuses 1 "overflow is named, not written" "policy f16" "NaN" "element" "bf16" -- \
    decode --model kl.safetensors --latents z.npy --policy f16 --scaling-factor 1e-9 -o o.png
refuses 1 "overflow writes no tensor either" "golden" -- \
    decode --model kl.safetensors --latents z.npy --scaling-factor 1e-200 -o o.npy

# A disk that fills up: a write beyond the limit fails as it would there.
limit() { (trap '' XFSZ; ulimit -f 4; exec "$@"); }
runner=(limit)
D=(decode --model tiny.safetensors --latents seed:1,16x16,n=2)
refuses 1 "disk full while writing .npy" "o.npy" -- "${D[@]}" -o o.npy
refuses 1 "disk full while writing .safetensors" "o.safetensors" -- "${D[@]}" -o o.safetensors
refuses 1 "disk full while writing pictures" "o_00000.png" -- "${D[@]}" -o o.png
refuses 1 "disk full while writing taps" ".npy" -- "${D[@]}" --taps full-taps
refuses 1 "disk full while writing a model" "a.safetensors" -- synth --arch sd15 --div 16 -o a.safetensors
runner=()

# A folder that takes no files. The superuser may write anywhere, so step down.
mkdir locked
chmod 555 locked
runner=()
if [ "$(id -u)" = 0 ]; then
    cp "$vaeref" "$box/vaeref"
    chmod 755 "$box/vaeref" "$box/work"
    chmod -R a+r .
    runner=(setpriv --reuid=65534 --regid=65534 --clear-groups)
fi
if [ "$(id -u)" != 0 ] || "${runner[@]}" "$box/vaeref" --version >/dev/null 2>&1; then
    old=$vaeref
    [ "$(id -u)" != 0 ] || vaeref=$box/vaeref
    refuses 1 "folder that takes no files" "locked" "ermission" -- "${T[@]}" -o locked/o.png
    refuses 1 "taps folder that takes no files" "locked" "ermission" -- "${T[@]}" --taps locked
    vaeref=$old
else
    echo "skipped: cannot step down from the superuser here"
fi
runner=()

# ---- these look wrong and work ---------------------------------------------------
for size in 1x1 1x7 5x3 2x1; do
    for model in kl tiny; do
        runs "$model at $size" decode --model $model.safetensors --latents "seed:2,$size" -o "$model-$size.npy"
    done
done
npy f2.npy "{'descr': '<f2', 'fortran_order': False, 'shape': (1, 4, 2, 2), }" 32
runs "half precision latents" decode --model tiny.safetensors --latents f2.npy -o f2-out.npy
npy f8.npy "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 4, 2, 2), }" 128
runs "double precision latents" decode --model tiny.safetensors --latents f8.npy -o f8-out.npy
check "equal latents of other types decode equally" cmp f2-out.npy f8-out.npy
runs "one tensor of two, by name" decode --model tiny.safetensors --latents two.safetensors#cat -o cat.npy
cp kl.safetensors model.bin
cp z.npy z.bin
runs "the content decides, not the name" decode --model model.bin --latents z.bin
check "no temporary file anywhere" test -z "$(find . -name '*.tmp*' -o -name '.*tmp*')"
finish 110
