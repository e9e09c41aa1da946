/**
 * What the first bytes of content show of its type, and whether that contradicts the type it is said to have. Signatures are those
 * of the formats themselves, as the WHATWG's MIME Sniffing Standard collects them.
 */
import { essenceOf } from './artifact.ts'

type Test = (head: Uint8Array) => boolean

interface Signature {
  /** The first is how it is called here. */
  readonly types: readonly string[]
  readonly fits: Test
  /** So short that other content may begin with it by chance: good for a no, but not for a yes. */
  readonly weak?: true
}

/** Text stands for its bytes. */
const at =
  (offset: number, text: string): Test =>
  head => {
    if (head.length < offset + text.length) return false
    for (let index = 0; index < text.length; index++) if (head[offset + index] !== text.charCodeAt(index)) return false
    return true
  }

const either =
  (...tests: readonly Test[]): Test =>
  head =>
    tests.some(test => test(head))

const both =
  (...tests: readonly Test[]): Test =>
  head =>
    tests.every(test => test(head))

const byte =
  (offset: number, mask: number, value: number): Test =>
  head =>
    ((head[offset] ?? 0) & mask) === value

const isHtml: Test = head =>
  /^<(?:!doctype html|html|head|script|iframe|body|style|title|table|meta)[\s>/]/i.test(`${startOf(head)} `)
const isMarkup: Test = head => startOf(head).startsWith('<') && !isHtml(head)

const office = 'application/vnd.openxmlformats-officedocument.'
const openDocument = 'application/vnd.oasis.opendocument.'

const signatures: readonly Signature[] = [
  { types: ['image/png', 'image/apng', 'image/vnd.mozilla.apng'], fits: at(0, '\x89PNG\r\n\x1a\n') },
  { types: ['image/jpeg', 'image/jpg', 'image/pjpeg'], fits: at(0, '\xff\xd8\xff') },
  { types: ['image/gif'], fits: either(at(0, 'GIF87a'), at(0, 'GIF89a')) },
  { types: ['image/webp'], fits: both(at(0, 'RIFF'), at(8, 'WEBP')) },
  { types: ['image/tiff'], fits: either(at(0, 'II*\0'), at(0, 'MM\0*')) },
  { types: ['image/bmp', 'image/x-ms-bmp'], fits: at(0, 'BM'), weak: true },
  { types: ['image/x-icon', 'image/vnd.microsoft.icon'], fits: at(0, '\0\0\x01\0'), weak: true },
  { types: ['image/svg+xml'], fits: isMarkup, weak: true },
  { types: ['application/pdf'], fits: at(0, '%PDF-') },
  {
    types: [
      'application/zip',
      'application/x-zip-compressed',
      'application/epub+zip',
      'application/java-archive',
      `${office}wordprocessingml.document`,
      `${office}spreadsheetml.sheet`,
      `${office}presentationml.presentation`,
      `${openDocument}text`,
      `${openDocument}spreadsheet`,
      `${openDocument}presentation`,
    ],
    fits: either(at(0, 'PK\x03\x04'), at(0, 'PK\x05\x06')),
  },
  { types: ['application/gzip', 'application/x-gzip'], fits: at(0, '\x1f\x8b\x08') },
  { types: ['application/wasm'], fits: at(0, '\0asm') },
  { types: ['application/x-elf', 'application/x-executable', 'application/x-sharedlib'], fits: at(0, '\x7fELF') },
  { types: ['audio/wav', 'audio/x-wav', 'audio/wave', 'audio/vnd.wave'], fits: both(at(0, 'RIFF'), at(8, 'WAVE')) },
  { types: ['audio/mpeg', 'audio/mp3'], fits: at(0, 'ID3') },
  // Without a tag it begins with its first frame: eleven bits that are set.
  { types: ['audio/mpeg', 'audio/mp3'], fits: both(byte(0, 0xff, 0xff), byte(1, 0xe0, 0xe0)), weak: true },
  { types: ['audio/aac', 'audio/aacp'], fits: either(both(byte(0, 0xff, 0xff), byte(1, 0xf6, 0xf0)), at(0, 'ADIF')), weak: true },
  { types: ['audio/flac', 'audio/x-flac'], fits: at(0, 'fLaC') },
  { types: ['audio/aiff', 'audio/x-aiff'], fits: both(at(0, 'FORM'), either(at(8, 'AIFF'), at(8, 'AIFC'))) },
  { types: ['audio/midi', 'audio/x-midi'], fits: at(0, 'MThd') },
  { types: ['audio/ogg', 'video/ogg', 'application/ogg', 'audio/opus', 'audio/vorbis'], fits: at(0, 'OggS\0') },
  { types: ['video/webm', 'audio/webm', 'video/x-matroska', 'audio/x-matroska'], fits: at(0, '\x1aE\xdf\xa3') },
  { types: ['video/x-msvideo', 'video/avi'], fits: both(at(0, 'RIFF'), at(8, 'AVI ')) },
  {
    types: [
      'video/mp4',
      'audio/mp4',
      'audio/m4a',
      'audio/x-m4a',
      'video/x-m4v',
      'video/quicktime',
      'video/3gpp',
      'audio/3gpp',
      'image/avif',
      'image/heic',
      'image/heif',
    ],
    fits: at(4, 'ftyp'),
  },
]

/** Types with a signature, each with all that its content may begin with. */
const known = new Map<string, Test[]>()
for (const { types, fits } of signatures)
  for (const type of types) {
    const tests = known.get(type)
    if (tests === undefined) known.set(type, [fits])
    else tests.push(fits)
  }

/** The type that the first bytes show; undefined where they show none. */
export function sniff(head: Uint8Array): string | undefined {
  // Of hypertext no beginning is demanded, a fragment is enough; but what begins like this is nothing else.
  if (isHtml(head)) return 'text/html'
  return signatures.find(({ weak, fits }) => weak !== true && fits(head))?.types[0]
}

/** What the first bytes show instead of a type; undefined where they do not contradict it. */
export function contradiction(type: string, head: Uint8Array): string | undefined {
  const said = essenceOf(type)
  const tests = known.get(said)
  if (tests !== undefined) return tests.some(fits => fits(head)) ? undefined : (sniff(head) ?? 'something else')
  const shown = sniff(head)
  return shown === undefined || agree(said, shown) ? undefined : shown
}

/** Whether content of a type without a signature may begin like that of one that has one. */
function agree(said: string, shown: string): boolean {
  if (isTextual(said)) return shown === 'text/html'
  const family = familyOf(said)
  if (!media.has(family)) return true
  // Many formats of pictures and sound are archives inside.
  if (shown === 'application/zip' || shown === 'application/gzip') return true
  if (family === 'image') return familyOf(shown) === 'image'
  return familyOf(shown) === 'audio' || familyOf(shown) === 'video'
}

const media: ReadonlySet<string> = new Set(['image', 'audio', 'video'])

function familyOf(type: string): string {
  return type.slice(0, type.indexOf('/'))
}

function isTextual(type: string): boolean {
  return type.startsWith('text/') || /^application\/(?:[\w.-]+\+)?(?:json|xml)$/.test(type)
}

/** Text without the mark and the white space before it; an empty one where it does not begin with any. */
function startOf(head: Uint8Array): string {
  let from = head[0] === 0xef && head[1] === 0xbb && head[2] === 0xbf ? 3 : 0
  while (from < head.length && (head[from] === 0x20 || ((head[from] ?? 0) >= 0x09 && (head[from] ?? 0) <= 0x0d))) from++
  return String.fromCharCode(...head.subarray(from, from + 16))
}
