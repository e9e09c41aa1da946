/** `vivarium new`: a server to begin with: one file, its tests, and the commands to run both. */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { basename, isAbsolute, join, relative, resolve } from 'node:path'
import { clip } from '../../jsonrpc/limits.ts'
import { version } from '../../revisions/revision.ts'
import { CliError } from '../errors.ts'
import type { Io } from '../io.ts'
import { installedFrom, packageRoot } from '../own-package.ts'
import { printerOf } from '../print.ts'
import type { Verb, VerbCall } from '../program.ts'
import { scaffold } from '../scaffold.ts'
import { Screen } from '../terminal/screen.ts'
import { say } from '../terminal/text.ts'

interface NewOptions {
  readonly vivarium?: string
  readonly install: boolean
  readonly format: 'text' | 'json'
}

export const newServer: Verb = {
  name: 'new',
  summary: 'Begin a server: one TypeScript file, with tests',
  declare(command, io) {
    command
      .argument('<name>', 'its name, and that of its folder')
      .option('--no-install', 'Do not run npm install in it')
      .option(
        '--vivarium <spec>',
        'Which vivarium it depends on: a version, or a file such as ../vivarium-0.1.0.tgz (default: where this one is from)',
      )
      .examples([
        ['vivarium new notes', 'then: cd notes && npm run dev'],
        ['vivarium new notes --no-install', 'only the files'],
      ])
      .action<NewOptions>(call => run(call, io))
  },
}

async function run({ words: [given = ''], options }: VerbCall<NewOptions>, io: Io): Promise<number> {
  const folder = resolve(given)
  const name = basename(folder)
  if (!/^[a-z0-9][a-z0-9._-]{0,63}$/.test(name))
    throw new CliError(1, `"${clip(name)}" is no name for a package`, 'Use small letters, digits, - and _')
  if (existsSync(folder) && readdirSync(folder).length > 0)
    throw new CliError(1, `The folder ${clip(given)} is not empty`, 'Choose another name')
  const files = scaffold({ name, vivarium: dependencyOf(options.vivarium, folder), author: authorName() })
  mkdirSync(folder, { recursive: true })
  for (const [path, text] of files) writeFileSync(join(folder, path), text)
  const { json, line, paint, aside } = printerOf(io)
  const isText = options.format !== 'json'
  if (isText) for (const path of files.keys()) line(say`  ${paint.good('+')} ${join(relative('.', folder) || '.', path)}`)
  if (options.install) {
    aside.line(aside.paint.dim('npm install …'))
    const waited = new Screen({ output: io.errors, env: io.env }).work('fetching what it needs, a Node among it')
    await install(folder).finally(waited)
  }
  if (!isText) json({ folder, files: [...files.keys()], installed: options.install })
  else {
    line()
    line(`  cd ${clip(relative('.', folder) || '.')}`)
    if (!options.install) line('  npm install')
    line('  npm test')
    line('  npm run dev')
  }
  return 0
}

/** As git knows whoever runs this, else as the system does. */
function authorName(): string {
  const { status, stdout } = spawnSync('git', ['config', 'user.name'], { encoding: 'utf8', timeout: 2_000 })
  const name = status === 0 ? stdout.trim() : ''
  return name === '' ? userInfo().username : name
}

/** A file is named from the new folder; anything else is npm's to understand. */
function dependencyOf(given: string | undefined, folder: string): string {
  const spec = given ?? installedFrom(packageRoot())
  if (spec === undefined) return `^${version}`
  const path = resolve(spec.replace(/^file:/, ''))
  if (/^[a-z+]+:/.test(spec) && !spec.startsWith('file:')) return spec
  if (!spec.startsWith('file:') && !/[\\/]|\.tgz$/.test(spec)) return spec
  if (!existsSync(path)) throw new CliError(1, `--vivarium: there is no file ${clip(path)}`, 'Correct the path')
  return `file:${isAbsolute(spec.replace(/^file:/, '')) ? path : relative(folder, path)}`
}

function install(folder: string): Promise<void> {
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
  const child = spawn(npm, ['install', '--no-fund', '--no-audit', '--loglevel=error'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return new Promise((done, failed) => {
    const wrong = (how: string): void =>
      failed(new CliError(1, `npm install ${how}; the files are there`, `cd ${clip(folder)} && npm install`))
    child.once('error', () => wrong('could not be started'))
    child.once('exit', code => (code === 0 ? done() : wrong(`failed (${code})`)))
  })
}
