/**
 * Keeps docs/api.txt, the list of every name that the package exports, so that a change of the public surface is seen in review.
 * `--write` brings it up to date. Also holds package.json and tsconfig.json to the same entries, and wants a doc comment for each export,
 * each type that one mentions, and each of their members, because an editor shows it.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { findSilent, publicSurface } from './api/surface.ts'
import { PUBLIC, present, WEB } from './lib/entries.ts'
import { readExports } from './lib/exports.ts'
import { root } from './lib/files.ts'
import { runCheck } from './lib/report.ts'

const FILE = 'docs/api.txt'
const HEAD = 'Every name that the package exports. Written by `npm run fix`, never by hand.\n'

/** The list as text, from the entries' sources. */
export function writeList(entries: ReadonlyMap<string, string>): string {
  const parts = [...entries].map(([name, source]) => {
    const { values, types } = readExports(source)
    return [`vivarium/${name}`, ...values.map(value => `  ${value}`), ...types.map(type => `  type ${type}`)].join('\n')
  })
  return [HEAD, ...parts.map(part => `${part}\n`)].join('\n')
}

/** What is in one list and not in the other, each with its entry, e.g. `+ vivarium/server  createServer`. */
export function diffLists(before: string, after: string): string[] {
  const [old, now] = [names(before), names(after)]
  return [
    ...[...old].filter(name => !now.has(name)).map(name => `- ${name}`),
    ...[...now].filter(name => !old.has(name)).map(name => `+ ${name}`),
  ]
}

function names(list: string): Set<string> {
  let entry = ''
  const found = new Set<string>()
  for (const line of list.split('\n')) {
    if (line.startsWith('vivarium/')) entry = line
    if (line.startsWith('  ')) found.add(`${entry}${line}`)
  }
  return found
}

function readText(path: string): string {
  try {
    return readFileSync(join(root, path), 'utf8')
  } catch {
    return ''
  }
}

/** Bun and Deno say `node` too. Whatever says neither has nothing but web standards, or must be taken to have no more. */
function facesOf(name: string): Record<string, string> {
  if (!WEB.includes(name)) return { default: `./dist/${name}.js` }
  return { browser: `./dist/web/${name}.js`, node: `./dist/${name}.js`, default: `./dist/web/${name}.js` }
}

function findEntryProblems(entries: ReadonlyMap<string, string>): string[] {
  const stars = [...entries].flatMap(([name, source]) =>
    readExports(source).stars.map(line => `${PUBLIC[name]}:${line}: \`export *\` hides what is public; name each export`),
  )
  const faces = Object.entries(PUBLIC).map(([name, file]) => [
    `./${name}`,
    { types: `./dist/types/${file.replace(/^src\//, '').replace(/\.ts$/, '.d.ts')}`, ...facesOf(name) },
  ])
  // Tools ask a package for its version that way.
  const documents = [
    ['./schemas', './dist/schemas/index.json'],
    ['./schemas/*', './dist/schemas/*'],
    ['./package.json', './package.json'],
  ]
  const wanted = JSON.stringify(Object.fromEntries([...faces, ...documents]))
  const { exports } = JSON.parse(readText('package.json')) as { exports: unknown }
  const { compilerOptions } = JSON.parse(readText('tsconfig.json')) as { compilerOptions: { paths: unknown } }
  const paths = JSON.stringify(
    Object.fromEntries(Object.entries(PUBLIC).map(([name, file]) => [`vivarium/${name}`, [`./${file}`]])),
  )
  return [
    ...stars,
    ...(JSON.stringify(exports) === wanted ? [] : [`package.json: "exports" should be ${wanted} (scripts/lib/entries.ts)`]),
    ...(JSON.stringify(compilerOptions.paths) === paths
      ? []
      : [`tsconfig.json: "paths" should be ${paths} (scripts/lib/entries.ts)`]),
  ]
}

if (import.meta.main) {
  const entries = new Map(Object.entries(present(PUBLIC)).map(([name, file]) => [name, readText(file)]))
  const list = writeList(entries)
  if (process.argv.includes('--write')) {
    mkdirSync(join(root, dirname(FILE)), { recursive: true })
    writeFileSync(join(root, FILE), list)
  }
  const stale =
    readText(FILE) === list
      ? []
      : [...diffLists(readText(FILE), list), `${FILE} is not up to date; run \`npm run fix\` and review the change`]
  const silent = findSilent(publicSurface(Object.values(present(PUBLIC))))
  runCheck('api', () => [...findEntryProblems(entries), ...silent, ...stale])
}
