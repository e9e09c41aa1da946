/** The `vivarium` command: runs one command line, and tells what went wrong in one line. */
import { readFileSync } from 'node:fs'
import { cliFailureOf, failureText, Interrupted, processIo } from './io.ts'
import { run } from './program.ts'

/** How long what was left open may keep the process alive. */
const graceMs = 2_000

/** The command line, without the name of the program. */
const args = process.argv.slice(2)
const io = processIo(process)
// Whoever reads a pipe may have read enough.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
// Not awaited at the top: what the verbs share with this file would wait for it.
void main()
// A promise that nobody waits for must not end the process with a stack; but whoever serves a file wants to see the one of its code.
if (args[0] !== 'serve')
  process.on('unhandledRejection', error => {
    if (error instanceof Interrupted) process.exit(error.exit)
    io.errors.write(failureText(error, wantsJson(args)))
    process.exit(cliFailureOf(error).exit)
  })

/** Runs the command line, prints a failure, and ends the process. */
async function main(): Promise<void> {
  try {
    process.exitCode = await run(args, io, versionOf())
  } catch (error) {
    if (error instanceof Interrupted) process.exit(error.exit)
    io.errors.write(failureText(error, wantsJson(args)))
    process.exitCode = cliFailureOf(error).exit
  }
  // A parent that listens would keep it alive.
  if (process.connected) process.disconnect()
  setTimeout(() => process.exit(), graceMs).unref()
}

/** From the package, which lies at the same distance from the source and from what it is built to. */
function versionOf(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
  return version
}

/** Also where the command line cannot be understood as a whole. */
function wantsJson(words: readonly string[]): boolean {
  const own = words.includes('--') ? words.slice(0, words.indexOf('--')) : words
  return own.some((word, at) => word === '--format=json' || (word === '--format' && own[at + 1] === 'json'))
}
