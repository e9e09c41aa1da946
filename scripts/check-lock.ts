/**
 * Each lock file names every optional platform package (a binary for macOS, Windows, musl …), also those that the
 * registry of the machine that wrote the lock did not offer. npm drops those silently, and then `npm ci` refuses the
 * lock everywhere. `--write` completes it: version from the package that asks, platform from the name, so that
 * npm skips them where they do not fit and finds them by name and version where they do.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { runCheck } from './lib/report.ts'

interface LockEntry {
  version?: string
  cpu?: string[]
  dev?: boolean
  libc?: string[]
  optional?: boolean
  os?: string[]
  peer?: boolean
  optionalDependencies?: Record<string, string>
}
type Packages = Record<string, LockEntry>

const OS = ['android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32', 'aix']
/** Words of other makers for the same. */
const SAME: Readonly<Record<string, string>> = { windows: 'win32', aarch64: 'arm64', '64': 'x64' }
const CPU = ['arm64', 'x64', 'arm', 'ia32', 'ppc64', 's390x', 'riscv64', 'loong64', 'mips64el', 'wasm32']

/** The entries a lock lacks, by their path in it. */
export function missingEntries(packages: Packages): Packages {
  const missing: Packages = {}
  for (const [path, entry] of Object.entries(packages)) {
    for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
      if (holds(packages, path, name, version)) continue
      const { cpu, libc, os } = platform(name)
      // In npm's own order of keys, so that its next install changes nothing.
      missing[`node_modules/${name}`] = {
        version,
        cpu,
        ...(entry.dev && { dev: true }),
        ...(libc && { libc: [libc] }),
        optional: true,
        ...(os.length > 0 && { os }),
        ...(entry.peer && { peer: true }),
      }
    }
  }
  return missing
}

/** Whether `name`, asked for by the package at `path`, is in the lock: beside it or in any folder above, in the version asked for. */
function holds(packages: Packages, path: string, name: string, version: string): boolean {
  for (let folder = path; ; ) {
    const found = packages[`${folder && `${folder}/`}node_modules/${name}`]
    if (found) return !/^\d/.test(version) || found.version === version
    if (!folder) return false
    const cut = folder.lastIndexOf('/node_modules/')
    folder = cut < 0 ? '' : folder.slice(0, cut)
  }
}

function platform(name: string): { cpu: string[]; libc: string | undefined; os: string[] } {
  const words = (name.split('/').at(-1)?.split('-') ?? []).map(word => SAME[word] ?? word)
  const cpu = CPU.filter(word => words.includes(word))
  if (cpu.length === 0) throw new Error(`${name}: no platform in its name; add its lock entry by hand`)
  const libc = words.includes('musl') ? 'musl' : words.some(word => word.startsWith('gnu')) ? 'glibc' : undefined
  return { cpu, libc, os: OS.filter(word => words.includes(word)) }
}

/** Those after the first are for what is installed apart: the runtimes, the documentation site, a browser. */
const LOCKS = [
  'package-lock.json',
  'test/runtimes/package-lock.json',
  'site/package-lock.json',
  'scripts/browser/package-lock.json',
]

if (import.meta.main) {
  const writing = process.argv.includes('--write')
  const problems = LOCKS.flatMap(path => {
    const lock = JSON.parse(readFileSync(path, 'utf8')) as { packages: Packages }
    const missing = missingEntries(lock.packages)
    if (!writing)
      return Object.keys(missing).map(name => `${path}: no entry for ${name}, so \`npm ci\` would refuse it; run \`npm run fix\``)
    if (Object.keys(missing).length > 0) {
      const [root, ...rest] = Object.entries({ ...lock.packages, ...missing })
      lock.packages = Object.fromEntries([root, ...rest.sort(([a], [b]) => a.localeCompare(b, 'en'))] as [string, LockEntry][])
      writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`)
    }
    return []
  })
  runCheck('lock', () => problems)
}
