/** Calls of tools to which the user may have to agree first: such a tool must be known before it is called. */
import type { ConfirmationClient } from '../features/reliability/confirmation/client.ts'
import { confirmationExtension } from '../features/reliability/confirmation/messages.ts'
import type { Params } from '../jsonrpc/message.ts'
import type { ToolOutcome } from './outcome.ts'
import { type CallToolOptions, callToolOn, type ToolCaller } from './tool-calls.ts'

/** Asks where the tool wants that, then calls. */
export function callConfirmed(
  caller: ToolCaller,
  confirmation: ConfirmationClient,
  name: string,
  args: Params | undefined,
  options: CallToolOptions,
): Promise<ToolOutcome> {
  const about = caller.book.get(name)?.tool._meta?.[confirmationExtension]
  if (about === undefined && !confirmation.asks(caller.session.opened)) return callToolOn(caller, name, args, options)
  return ask(caller, confirmation, name, args, options)
}

async function ask(
  caller: ToolCaller,
  confirmation: ConfirmationClient,
  name: string,
  args: Params = {},
  options: CallToolOptions,
): Promise<ToolOutcome> {
  const { book, list, session } = caller
  if (book.get(name) === undefined) await list(false, options.signal)
  return confirmation.call({
    server: session.opened.serverInfo?.name ?? '',
    tool: name,
    arguments: args,
    about: book.get(name)?.tool._meta,
    signal: options.signal,
    agreed: options.confirmed === true,
    send: meta =>
      callToolOn(caller, name, args, meta === undefined ? options : { ...options, meta: { ...options.meta, ...meta } }),
  })
}
