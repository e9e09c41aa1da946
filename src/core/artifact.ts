/**
 * Content, by value or by reference, with what is known of it. What was announced (size, digest) is held against what came
 * before it is used; where it comes from is a claim, and describes without permitting anything.
 */
import { clip } from '../jsonrpc/limits.ts'
import { problem } from './problem.ts'

/** Where in its source something was found. */
export interface SourceLocation {
  readonly page?: number
  readonly paragraph?: number
  readonly line?: number
  /** Of a table, such as `B14`. */
  readonly cell?: string
  /** In the structured content, such as `$.revenue.q3`. */
  readonly jsonPath?: string
  /** Without the `#`. */
  readonly urlFragment?: string
}

/** How sure a source is of what it gave. */
export type SourceConfidence = 'exact' | 'derived' | 'estimated' | 'uncertain'

/** What a runtime writes down of a call it has run. Whoever gets it from elsewhere gets a claim like any other. */
export interface Stamp {
  /** The name of the server that ran the call. */
  readonly server: string
  readonly serverVersion?: string
  /** The tool that was called. */
  readonly tool: string
  /** Names the run that made the result. */
  readonly operationId: string
  /** Of the arguments, as they came. */
  readonly inputDigest: string
  /** Claims that were left out because there were too many, or because they were malformed. */
  readonly omitted?: number
}

/** Where something comes from, as its source says. */
export interface Provenance {
  /** A document, a database, an interface. */
  readonly source: string
  /** Where in the source. */
  readonly location?: SourceLocation
  /** When the source was read. */
  readonly retrievedAt?: Date
  /** Of the source, as it names its versions. */
  readonly version?: string
  /** How sure the source is. */
  readonly confidence?: SourceConfidence
  /** What was done with it, in words. */
  readonly transformation?: string
  /** Of the source, as it was. */
  readonly digest?: string
  /** Which others in the same list it was made from, by their index. */
  readonly derivedFrom?: readonly number[]
  /** Written by the runtime, unlike everything else here. */
  readonly stamp?: Stamp
}

/** What is known of a content without having it: type, size, digest, where it comes from. */
export interface ArtifactFacts {
  /** `type/subtype`, perhaps with parameters. */
  readonly mime: string
  /** Bytes. */
  readonly size: number
  /** `sha256:` and 64 hexadecimal digits, as stores of blobs name them. */
  readonly digest: string
  /** Where it comes from, as far as anybody says. */
  readonly provenance?: readonly Provenance[]
}

/** A content with its facts, as bytes or as an address under which the bytes can be fetched. */
export type Artifact = ArtifactFacts &
  (
    | { readonly by: 'value'; readonly bytes: Uint8Array<ArrayBuffer> }
    /** `expires`: milliseconds since the epoch. */
    | { readonly by: 'reference'; readonly uri: string; readonly expires?: number }
  )

/** Content as it is, with its size and digest. */
export async function artifactOf(
  content: Uint8Array<ArrayBuffer> | string,
  mime: string,
  provenance?: readonly Provenance[],
): Promise<Artifact & { readonly by: 'value' }> {
  if (!isMime(mime)) throw problem('INVALID_INPUT', `"${clip(mime)}" is no media type: write type/subtype`)
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content
  const from = provenance === undefined ? {} : { provenance }
  return { by: 'value', mime, size: bytes.length, digest: await contentDigest(bytes), bytes, ...from }
}

/** Refuses content that is not what was announced, whole: nothing of it may be used. */
export async function checkContent(announced: ArtifactFacts, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
  // The cheap half first: what has the wrong size is not worth a digest.
  const same = bytes.length === announced.size && (await contentDigest(bytes)) === announced.digest
  if (!same) throw contentMismatch(announced)
}

/** What came is another content than the one that was announced. */
export function contentMismatch({ size, digest }: ArtifactFacts): Error {
  return problem('CHECKSUM_MISMATCH', `The content is not what was announced: ${size} bytes, ${clip(digest)}`, {
    suggestion: 'Ask for a new reference',
  })
}

/** The SHA-256 digest of bytes, written as stores of blobs write it. */
export async function contentDigest(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  return `sha256:${Array.from(digest, byte => byte.toString(16).padStart(2, '0')).join('')}`
}

const token = /^[\w!#$&^.+-]{1,127}\/[\w!#$&^.+-]{1,127}$/

/** Whether a text is a media type, perhaps with parameters. */
export function isMime(text: string): boolean {
  return text.length <= 1_024 && token.test(essenceOf(text))
}

/** Whether it stands for media types: one, or all of a kind, such as `image/*`. */
export function isMimePattern(text: string): boolean {
  return essenceOf(text) === '*/*' || isMime(text.replace('/*', '/any'))
}

/** Whether a media type is one of those that a pattern such as `image/*` means. Parameters and case do not count. */
export function isOfType(pattern: string, mime: string): boolean {
  const [wanted, given] = [essenceOf(pattern), essenceOf(mime)]
  if (wanted === '*/*' || wanted === '*') return true
  return wanted.endsWith('/*') ? given.startsWith(wanted.slice(0, -1)) : wanted === given
}

/** A media type without its parameters, in lower case. */
export function essenceOf(mime: string): string {
  return (mime.split(';', 1)[0] ?? '').trim().toLowerCase()
}
