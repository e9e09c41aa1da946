/**
 * Finds a Chromium: the one that `CHROMIUM` names, one of the system, or, on Linux, the one that npm brings by the lock file in this
 * folder. Undefined where none of them can run: whoever asks says what is left out.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliDecompressSync } from 'node:zlib'
import { installPinned, keep } from '../lib/pinned-install.ts'

export interface Browser {
  readonly path: string
  /** What its process needs beside our own environment. */
  readonly env: Readonly<Record<string, string>>
}

const SYSTEM = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]

let found: Browser | undefined | 'not looked for' = 'not looked for'

export function findBrowser(): Browser | undefined {
  if (found === 'not looked for') found = look()
  return found
}

function look(): Browser | undefined {
  const path = [process.env['CHROMIUM'] ?? '', ...SYSTEM].find(each => each !== '' && existsSync(each))
  if (path !== undefined) return { path, env: {} }
  if (process.platform !== 'linux' || process.arch !== 'x64') return undefined
  try {
    const browser = fromNpm()
    return spawnSync(browser.path, ['--version'], { env: { ...process.env, ...browser.env }, stdio: 'ignore' }).status === 0
      ? browser
      : undefined
  } catch (error) {
    console.error(`browser: ${error instanceof Error ? error.message : String(error)}`)
    return undefined
  }
}

/** Unpacked beside its archives, which are made for a platform that forbids large files. */
function fromNpm(): Browser {
  const home = installPinned('browser', import.meta.dirname)
  const packed = join(home, 'node_modules', '@sparticuz', 'chromium', 'bin')
  const unpacked = join(home, 'unpacked')
  if (!existsSync(unpacked)) unpack(packed, unpacked)
  // Libraries and a font for machines without a desktop, of which a container often has neither.
  const env = {
    LD_LIBRARY_PATH: [process.env['LD_LIBRARY_PATH'], join(unpacked, 'lib')].filter(Boolean).join(':'),
    ...(!existsSync('/etc/fonts') && { FONTCONFIG_PATH: join(unpacked, 'fonts') }),
  }
  return { path: join(unpacked, 'chromium'), env }
}

function unpack(packed: string, unpacked: string): void {
  const draft = `${unpacked}.${process.pid}`
  mkdirSync(draft, { recursive: true })
  const read = (name: string) => brotliDecompressSync(readFileSync(findFile(packed, name)))
  writeFileSync(join(draft, 'chromium'), read('chromium.br'))
  chmodSync(join(draft, 'chromium'), 0o755)
  for (const name of ['al2023.tar.br', 'fonts.tar.br']) {
    const { status } = spawnSync('tar', ['-xf', '-', '-C', draft], { input: read(name), stdio: ['pipe', 'ignore', 'inherit'] })
    if (status !== 0) throw new Error(`tar could not unpack ${name}`)
  }
  keep(draft, unpacked)
}

/** Some versions keep a folder for each processor. */
function findFile(folder: string, name: string): string {
  const path = [join(folder, name), join(folder, 'x64', name)].find(existsSync)
  if (path === undefined) throw new Error(`${name} is not in ${folder}`)
  return path
}
