/** The bytes of a piece of media, for those who have to decode it: checked first, decoded then. */
import type { Artifact } from '../../../core/artifact.ts'

export interface ReadMediaOptions {
  /** The type of bare base64, which does not say one. Default: what its first bytes show. */
  readonly type?: string
  /** Types that it may have, such as `image/*`. Default: any. */
  readonly types?: readonly string[]
  /** The most bytes. Default 16 MiB. */
  readonly maxBytes?: number
}

/** What can be read: a content block, an object with `mimeType` and `data` or `blob`, a data URL, or base64. */
export type MediaValue = string | object

/**
 * Decodes media, from arguments or from results. Throws a Problem that names the rule where it is too large, broken, or something
 * else than it says; nothing is decoded then.
 * @example const { bytes, mime } = await readMedia(out.content[0], { types: ['image/*'], maxBytes: 1_000_000 })
 */
export async function readMedia(
  value: MediaValue | undefined,
  options: ReadMediaOptions = {},
): Promise<Artifact & { readonly by: 'value' }> {
  const { decodeMedia } = await import('./decode.ts')
  return decodeMedia(value, options)
}
