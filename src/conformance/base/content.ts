/** What a content block must look like on a revision's wire. */
import { isRecord } from '../../jsonrpc/message.ts'
import type { RevisionId } from '../scenario.ts'

const base64 = /^[A-Za-z0-9+/]*={0,2}$/

/** Which kinds a revision has. */
function kindsOf(revision: RevisionId): readonly string[] {
  if (revision === '2024-11-05') return ['text', 'image', 'resource']
  if (revision === '2025-03-26') return ['text', 'image', 'audio', 'resource']
  return ['text', 'image', 'audio', 'resource', 'resource_link']
}

/** What is wrong with a block; undefined: nothing. */
export function blockFault(block: unknown, revision: RevisionId): string | undefined {
  if (!isRecord(block)) return 'a content block must be an object'
  const type = String(block['type'])
  if (!kindsOf(revision).includes(type)) return `${revision} has no content block of type "${type.slice(0, 40)}"`
  if (type === 'text') return typeof block['text'] === 'string' ? undefined : 'a text block must have a text'
  if (type === 'image' || type === 'audio') return mediaFault(block, type)
  if (type === 'resource_link') {
    return typeof block['uri'] === 'string' && typeof block['name'] === 'string'
      ? undefined
      : 'a resource_link must have uri and name'
  }
  return isRecord(block['resource']) ? contentsFault(block['resource']) : 'a resource block must have a resource'
}

function mediaFault(block: Record<string, unknown>, type: string): string | undefined {
  if (typeof block['mimeType'] !== 'string') return `an ${type} block must have a mimeType`
  const { data } = block
  return typeof data === 'string' && base64.test(data) ? undefined : `the data of an ${type} block must be base64`
}

/** What is wrong with the contents of a resource. */
export function contentsFault(contents: unknown): string | undefined {
  if (!isRecord(contents)) return 'the contents of a resource must be an object'
  if (typeof contents['uri'] !== 'string') return 'the contents of a resource must have a uri'
  if (typeof contents['text'] === 'string') return undefined
  const { blob } = contents
  return typeof blob === 'string' && base64.test(blob)
    ? undefined
    : 'the contents of a resource must have a text, or a blob in base64'
}
