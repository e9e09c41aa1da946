/**
 * Content, by value or by reference, with what is known of it. What was announced (size, digest) is held against what came
 * before it is used; where it comes from is a claim, and describes without permitting anything.
 */
import { clip } from '../jsonrpc/limits.ts'
import { problem } from './problem.ts'

/** Where something comes from, as its source says. */
export interface Provenance {
  readonly source: string
  readonly location?: Readonly<Record<string, string | number>>
  /** Milliseconds since the epoch. */
  readonly retrievedAt?: number
  readonly version?: string
  readonly confidence?: 'exact' | 'derived' | 'estimated' | 'uncertain'
  readonly transformation?: string
}

export interface ArtifactFacts {
  /** `type/subtype`, perhaps with parameters. */
  readonly mime: string
  /** Bytes. */
  readonly size: number
  /** `sha256:` and 64 hexadecimal digits, as stores of blobs name them. */
  readonly digest: string
  readonly provenance?: readonly Provenance[]
}

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
  if (same) return
  throw problem(
    'CHECKSUM_MISMATCH',
    `The content is not what was announced: ${announced.size} bytes, ${clip(announced.digest)}`,
    {
      suggestion: 'Ask for a new reference',
    },
  )
}

export async function contentDigest(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  return `sha256:${Array.from(digest, byte => byte.toString(16).padStart(2, '0')).join('')}`
}

const token = /^[\w!#$&^.+-]{1,127}\/[\w!#$&^.+-]{1,127}$/

export function isMime(text: string): boolean {
  return text.length <= 1_024 && token.test(essence(text))
}

/** Whether a media type is one of those that a pattern such as `image/*` means. Parameters and case do not count. */
export function isOfType(pattern: string, mime: string): boolean {
  const [wanted, given] = [essence(pattern), essence(mime)]
  if (wanted === '*/*' || wanted === '*') return true
  return wanted.endsWith('/*') ? given.startsWith(wanted.slice(0, -1)) : wanted === given
}

function essence(mime: string): string {
  return (mime.split(';', 1)[0] ?? '').trim().toLowerCase()
}
