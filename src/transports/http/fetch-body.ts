/** Reads the body of a web Request: counted while it comes, UTF-8 or nothing. */
import { notUtf8, type Refusal, tooLarge } from './refusal.ts'

/** The text, or why there is none. */
export async function readWebBody(request: Request, limit: number): Promise<string | Refusal> {
  const reader = request.body?.getReader()
  if (reader === undefined) return ''
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let text = ''
  let size = 0
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      size += part.value.byteLength
      if (size > limit) {
        void reader.cancel().catch(() => undefined)
        return tooLarge(limit)
      }
      text += decoder.decode(part.value, { stream: true })
    }
    return text + decoder.decode()
  } catch {
    void reader.cancel().catch(() => undefined)
    return notUtf8
  }
}
