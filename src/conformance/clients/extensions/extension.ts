/** What rows about extensions share: how the scripted server declares them, and what a client must know to be judged. */
import { eras } from '../../define.ts'
import { objectIn } from '../../expectations.ts'
import type { Json } from '../../scenario.ts'
import { extensionId } from '../../tools.ts'
import { type ClientRowDefiner, clientTable, requires } from '../define.ts'
import type { LoggedMessage } from '../log.ts'
import { textResult } from '../play.ts'

/** Rows about an extension that the client must know, at the newest revision of each era. */
export function knowing(name: string, more: Parameters<typeof clientTable>[1] = {}): ClientRowDefiner {
  const id = extensionId(name)
  const knows = requires(seen => seen.extension(id), `the client does not declare ${id}`)
  return clientTable('ext/client/', { revisions: eras, ...more, needs: [knows, ...(more.needs ?? [])] })
}

/** Capabilities of a server with tools and these extensions. */
export function offering(...extensions: readonly string[]): Json {
  return { tools: {}, extensions: Object.fromEntries(extensions.map(name => [extensionId(name), {}])) }
}

/** What a request says under the key of an extension. */
export function under(message: Pick<LoggedMessage, 'meta'> | undefined, extension: string): Json {
  return objectIn(message?.meta, extensionId(extension))
}

/** A problem as a tool's result carries it. */
export function problemResult(problem: Json): Json {
  return textResult(String(problem['message']), { isError: true, _meta: { [extensionId('problem')]: problem } })
}

/** Whether the client knows that a call was not done. */
export function isUndone({ ok, isError }: { readonly ok: boolean; readonly isError?: boolean }): boolean {
  return !ok || isError === true
}
