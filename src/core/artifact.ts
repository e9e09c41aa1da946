/**
 * Content, by value or by reference, with what is known of it. What was announced (size, digest) is held against what came
 * before it is used; where it comes from is a claim, and describes without permitting anything.
 */
import { clip } from '../jsonrpc/limits.ts'
import { problem } from './problem.ts'

/** Where something is found in its source. */
export interface SourceLocation {
  /** The page, counted from 1. */
  readonly page?: number
  /** The paragraph, counted from 1. */
  readonly paragraph?: number
  /** The line, counted from 1. */
  readonly line?: number
  /** The cell of a table, for example `B14`. */
  readonly cell?: string
  /** The path in structured content, for example `$.revenue.q3`. */
  readonly jsonPath?: string
  /** The fragment of the URL, without the `#`. */
  readonly urlFragment?: string
}

/** How certain a source is of what it states. */
export type SourceConfidence = 'exact' | 'derived' | 'estimated' | 'uncertain'

/** What a runtime records about a call that it executed. A stamp from elsewhere is a claim like any other. */
export interface Stamp {
  /** The name of the server that ran the call. */
  readonly server: string
  /** The version of that server. */
  readonly serverVersion?: string
  /** The tool that was called. */
  readonly tool: string
  /** The id of the execution. */
  readonly operationId: string
  /** The digest of the arguments. */
  readonly inputDigest: string
  /** Claims that were left out because they were too many or malformed. */
  readonly omitted?: number
}

/** Where a content comes from, as its source states. */
export interface Provenance {
  /** The document, database or API. */
  readonly source: string
  /** Where in the source. */
  readonly location?: SourceLocation
  /** When the source was read. */
  readonly retrievedAt?: Date
  /** The version of the source. */
  readonly version?: string
  /** How sure the source is. */
  readonly confidence?: SourceConfidence
  /** What was done with it, in words. */
  readonly transformation?: string
  /** The digest of the source. */
  readonly digest?: string
  /** The indexes of the entries in the same list from which it was derived. */
  readonly derivedFrom?: readonly number[]
  /** Written by the runtime. Everything else is a claim. */
  readonly stamp?: Stamp
}

/** What is known of a content without having it. */
export interface ArtifactFacts {
  /** The media type, `type/subtype` with optional parameters. */
  readonly mime: string
  /** The size in bytes. */
  readonly size: number
  /** The digest: `sha256:` and 64 hexadecimal digits. */
  readonly digest: string
  /** Where it comes from, if stated. */
  readonly provenance?: readonly Provenance[]
}

/** A content: its bytes, or the address at which they can be fetched. */
export type Artifact = ArtifactFacts &
  (
    | {
        /** Whether the bytes are here (`value`) or can be fetched (`reference`). */
        readonly by: 'value'
        /** The content. */
        readonly bytes: Uint8Array<ArrayBuffer>
      }
    /** `expires`: milliseconds since the epoch. */
    | {
        /** Whether the bytes are here (`value`) or can be fetched (`reference`). */
        readonly by: 'reference'
        /** Where the content can be fetched. */
        readonly uri: string
        /** When the address becomes invalid, in milliseconds since the epoch. Absent: never. */
        readonly expires?: number
      }
  )

/** Content as it is, with its size and digest. */
export async function artifactOf(
  content: Uint8Array<ArrayBuffer> | string,
  mime: string,
  provenance?: readonly Provenance[],
): Promise<Artifact & { readonly by: 'value' }> {
  if (!isMime(mime)) throw problem('INVALID_INPUT', `"${clip(mime)}" is not a media type: write type/subtype`)
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
  return problem('CHECKSUM_MISMATCH', `The content does not match its reference (${size} bytes, ${clip(digest)})`, {
    suggestion: 'Request a new reference',
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
