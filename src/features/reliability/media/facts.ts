/** What an author says of the media that a tool takes and gives, and what others are told of it. */
import { isMimePattern } from '../../../core/artifact.ts'
import { checkOptions, type KindsOf } from '../../../core/options.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { mediaExtension, type WireMedia } from './messages.ts'

export interface MediaFacts {
  /** Types that its arguments may have, such as `image/*`. A hint, unless `strict`. */
  readonly input?: readonly string[]
  /** Types of its results. Another one is given with a warning, unless `strict`. */
  readonly output?: readonly string[]
  /** Bytes of all media in the arguments of one call, decoded. */
  readonly maxInputBytes?: number
  /** The same for a result. */
  readonly maxOutputBytes?: number
  /** Other types than those listed are refused. Default false. */
  readonly strict?: boolean
  /** How bytes come: within the message (`base64`, the default), or as references to where they are. */
  readonly transport?: 'base64' | 'reference'
}

/** The option of a tool. */
export interface WithMedia {
  /** The media that it takes and gives: checked before anything is decoded, in both directions. */
  readonly media?: MediaFacts
}

const kinds: KindsOf<MediaFacts> = {
  input: 'list',
  output: 'list',
  maxInputBytes: 'number',
  maxOutputBytes: 'number',
  strict: 'boolean',
  transport: 'string',
}

/** What a list tells everybody of the tool. Throws where what was said makes no sense. */
export function mediaMeta(tool: string, { media }: WithMedia): Readonly<Record<string, WireMedia>> | undefined {
  if (media === undefined) return undefined
  const where = `The media of tool "${clip(tool)}"`
  checkOptions(where, media, kinds)
  const { input, output, maxInputBytes, maxOutputBytes, strict, transport } = media
  for (const type of [...(input ?? []), ...(output ?? [])])
    if (typeof type !== 'string' || !isMimePattern(type))
      throw new TypeError(`${where}: "${clip(String(type))}" is no media type; write type/subtype, or image/*`)
  for (const bytes of [maxInputBytes, maxOutputBytes])
    if (bytes !== undefined && !Number.isSafeInteger(bytes)) throw new TypeError(`${where}: a size is a whole number of bytes`)
  if (transport !== undefined && transport !== 'base64' && transport !== 'reference')
    throw new TypeError(`${where}: transport is "${clip(transport)}"; give 'base64' or 'reference'`)
  const said: WireMedia = {
    ...(input === undefined ? {} : { input_types: input }),
    ...(output === undefined ? {} : { output_types: output }),
    ...(maxInputBytes === undefined ? {} : { max_input_size_bytes: maxInputBytes }),
    ...(maxOutputBytes === undefined ? {} : { max_output_size_bytes: maxOutputBytes }),
    ...(strict === undefined ? {} : { strict }),
    ...(transport === undefined ? {} : { binary_transport: transport }),
  }
  return { [mediaExtension]: said }
}
