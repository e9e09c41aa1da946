/** Which pages there are: the documentation, README and its neighbours, what they link to in the repository, and generated ones. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { pathToFileURL } from 'node:url'
import { listFiles, root } from '../scripts/lib/files.ts'
import { SECTIONS } from './structure.ts'

export interface Page {
  /** In the repository, also where no such file is kept. */
  readonly path: string
  /** Its address without the leading slash: empty for the front page, `guide/` for a folder. */
  readonly address: string
  readonly title: string
  readonly text: string
}

/** Those whose address is not their place in `docs`. What else lies beside that folder is shown as source where something links to it. */
const NEIGHBOURS: Readonly<Record<string, string>> = {
  'README.md': '',
  'ARCHITECTURE.md': 'architecture',
  'CONTRIBUTING.md': 'contributing',
  'CHANGELOG.md': 'changelog',
  'docs/index.md': 'contents',
}

/** A browsable folder of the repository. */
const EXAMPLES = 'examples'

export async function readPages(): Promise<readonly Page[]> {
  const read = (path: string) => readFileSync(join(root, path), 'utf8')
  const written = [...new Set([...Object.keys(NEIGHBOURS), ...listFiles(['docs'], /\.md$/)])].map(path => page(path, read(path)))
  const generated = (await apiPages()).map(({ path, text }) => page(`docs/${path}`, text))
  const known = [...written, ...generated.filter(each => !written.some(({ path }) => path === each.path))]
  const fronts = SECTIONS.filter(({ address }) => !known.some(each => each.address === address))
  return [...known, ...fronts.map(({ title, address }) => ({ path: `docs/${address}`, address, title, text: `# ${title}\n` }))]
}

/** The reference of the library, which is written from its types. */
async function apiPages(): Promise<readonly { path: string; text: string }[]> {
  const module = join(root, 'scripts', 'docs', 'api-reference.ts')
  if (!existsSync(module)) return []
  const { apiPages } = (await import(pathToFileURL(module).href)) as {
    apiPages(): Promise<readonly { path: string; text: string }[]>
  }
  return apiPages()
}

function page(path: string, text: string): Page {
  return { path, address: addressOf(path) ?? '', title: titleOf(text) ?? path, text }
}

/** The address of a page of Markdown; undefined for what is no page. */
export function addressOf(path: string): string | undefined {
  const neighbour = NEIGHBOURS[path]
  if (neighbour !== undefined) return neighbour
  const name = /^docs\/(.+)\.md$/.exec(path)?.[1]
  return name?.replace(/(^|\/)index$/, '$1')
}

/** The first heading, without marks. */
export function titleOf(text: string): string | undefined {
  return /^#\s+(.+)$/m.exec(text)?.[1]?.replace(/[`*_]/g, '')
}

/** What a link to something in the repository that is no page leads to: its source, shown as a page. Folders end in a slash. */
export function sourcePages(linked: Iterable<string>): readonly Page[] {
  const wanted = new Set([EXAMPLES, ...linked])
  const files = new Set([...wanted].flatMap(path => (isFolder(path) ? listFiles([path], /./) : [path])))
  const folders = new Set([...wanted].filter(isFolder))
  for (const file of files) {
    for (let folder = dirname(file); [...wanted].some(each => within(folder, each)); folder = dirname(folder)) folders.add(folder)
  }
  return [
    ...[...folders].map(folder => listing(folder, [...files], [...folders])),
    ...[...files].filter(file => !isReadme(file, folders)).map(sourcePage),
  ]
}

/** Its folder shows it. */
function isReadme(file: string, folders: ReadonlySet<string>): boolean {
  return posix.basename(file) === 'README.md' && folders.has(dirname(file))
}

function isFolder(path: string): boolean {
  return statSync(join(root, path)).isDirectory()
}

function within(folder: string, parent: string): boolean {
  return folder === parent || folder.startsWith(`${parent}/`)
}

export const sourceAddress = (path: string): string => `source/${path.replace(/\/$/, '')}${isFolder(path) ? '/' : ''}`

function sourcePage(path: string): Page {
  const text = readFileSync(join(root, path), 'utf8')
  const fence = '`'.repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([run]) => run.length + 1)))
  const language = LANGUAGES[posix.extname(path)] ?? 'text'
  const shown = path.endsWith('.md')
    ? text
    : `# ${posix.basename(path)}\n\n\`${path}\`\n\n${fence}${language}\n${text.trimEnd()}\n${fence}\n`
  return { path, address: sourceAddress(path), title: posix.basename(path), text: shown }
}

const LANGUAGES: Readonly<Record<string, string>> = {
  ...{ '.ts': 'ts', '.mjs': 'js', '.js': 'js', '.json': 'json', '.yaml': 'yaml', '.yml': 'yaml', '.html': 'html' },
}

/** A folder: what its README says, and what is in it. */
function listing(folder: string, files: readonly string[], folders: readonly string[]): Page {
  const entries = [...folders.map(each => `${each}/`), ...files]
    .filter(each => dirname(each.replace(/\/$/, '')) === folder && posix.basename(each) !== 'README.md')
    .sort()
    .map(each => posix.basename(each) + (each.endsWith('/') ? '/' : ''))
  const readme = files.includes(`${folder}/README.md`) ? readFileSync(join(root, folder, 'README.md'), 'utf8') : undefined
  const title = folder === EXAMPLES ? 'Examples' : posix.basename(folder)
  const list = entries.map(name => `- [${name}](${name.replace(/\/$/, '')})`).join('\n')
  const text = `${readme?.trim() ?? `# ${title}`}\n\n## Files\n\n${list}\n`
  return { path: `${folder}/README.md`, address: `source/${folder}/`, title, text }
}
