/** The name of a conversation as a part of keys, whatever is in it. */
import { hash } from 'node:crypto'

/** Leaves room for what stands beside it. */
const most = 600

/** Short names stay readable; of long ones and those that are no text there is a digest, which no short name can look like. */
export function conversationKey(id: string): string {
  const encoded = encodeURIComponent(id.toWellFormed())
  if (encoded.length > most || !id.isWellFormed()) return `~${hash('sha256', JSON.stringify(id), 'base64url')}`
  return encoded.startsWith('~') ? `%7E${encoded.slice(1)}` : encoded
}
