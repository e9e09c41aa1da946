/**
 * How far a task is, as its status message says it: `2/3 step 2`. Task wires without progress notifications have nothing else for it, and
 * people read it as well.
 */
import type { Progress } from '../../../engine/calls.ts'
import { clip } from '../../../jsonrpc/limits.ts'

export function progressText({ progress, total, message }: Progress): string {
  const count = total === undefined ? `${progress}` : `${progress}/${total}`
  return clip(message === undefined ? count : `${count} ${message}`, 1_000)
}

/** What a status message says of it; of one that begins with no number only its words. */
export function progressFromText(text: string): Progress | { readonly message: string } {
  const [, progress, total, message] = /^(\d+(?:\.\d+)?)(?:\/(\d+(?:\.\d+)?))?(?:\s+([\s\S]+))?$/.exec(text) ?? []
  if (progress === undefined) return { message: text }
  return {
    progress: Number(progress),
    ...(total !== undefined && { total: Number(total) }),
    ...(message !== undefined && { message }),
  }
}
