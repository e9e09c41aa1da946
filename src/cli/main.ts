/** The `vivarium` command: picks the command by its name, and says what went wrong in one line. */
import { up } from './up.ts'

const [name = '', ...args] = process.argv.slice(2)

try {
  if (name !== 'up') throw new TypeError(`There is no command ${JSON.stringify(name)}: write vivarium up`)
  const { stdin: input, stdout: output, env } = process
  process.exitCode = await up(args, { input, output, env, signals: process })
} catch (error) {
  console.error(`vivarium: ${error instanceof Error ? error.message : error}`)
  process.exitCode = 1
}
