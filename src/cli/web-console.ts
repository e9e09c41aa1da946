/** The web console from the command line: telling where it is, opening the browser, and serving a playground until it is interrupted. */
import { type ConsoleOptions, type RunningConsole, serveConsole } from '../console/index.ts'
import { linkNotes, openLink, userName } from './console-link.ts'
import { CliError, type Io, untilInterrupted } from './io.ts'
import { printerOf } from './print.ts'
import { foreignText, say } from './terminal/text.ts'
import type { WebOptions } from './web-options.ts'

/** Prints the link of a console, and opens the browser where that makes sense. */
export async function announce(
  running: RunningConsole,
  { port, opens }: { readonly port: number | undefined; readonly opens: boolean },
  io: Io,
): Promise<void> {
  const { aside } = printerOf(io)
  aside.line(say`console  ${aside.paint.name(running.link)}  (once, 10 min)`)
  for (const note of linkNotes(running, port, io)) aside.note(`  ${note}`)
  if (opens) await openLink(running, io)
}

/** Serves a console, says where, and ends with the command. */
export async function webConsole(
  options: Omit<ConsoleOptions, 'by' | 'port' | 'onError'>,
  { port, open }: WebOptions,
  io: Io,
): Promise<number> {
  const { aside } = printerOf(io)
  const onError = (error: unknown): void =>
    aside.warn(foreignText(`console: ${error instanceof Error ? error.message : String(error)}`))
  const running = await serveConsole({ ...options, by: userName(), onError, ...(port !== undefined && { port }) }).catch(
    (error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
      throw new CliError(`The port ${port} is in use`, 'Pass another --port, or leave it out')
    },
  )
  try {
    await announce(running, { port, opens: open !== false }, io)
    aside.note('  Press Ctrl-C to end')
    await untilInterrupted(io.signal)
    return 0
  } finally {
    await running.close()
  }
}
