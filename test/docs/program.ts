/** The programs in the documentation: all TypeScript of a page, in order, as one file that imports what was built. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PUBLIC } from '../../scripts/lib/entries.ts'

const root = join(import.meta.dirname, '../..')
/** Inside the package, so that its own name resolves to what was built. */
export const scratch = join(root, '.cache', `snippets-${process.pid}`)

/** Writes the program of a page; gives its file. */
export async function writeProgram(page: string): Promise<string> {
  const markdown = await readFile(join(root, page), 'utf8')
  const file = join(scratch, `${page.replaceAll(/\W/g, '-')}.ts`)
  await mkdir(scratch, { recursive: true })
  await writeFile(file, snippets(markdown).join('\n'))
  return file
}

/** Writes the programs of pages beside a configuration by which the compiler finds the sources under the package's name; gives the folder. */
export async function writeTyped(name: string, pages: readonly string[]): Promise<string> {
  const folder = join(scratch, name)
  await mkdir(folder, { recursive: true })
  for (const page of pages) {
    const code = snippets(await readFile(join(root, page), 'utf8')).join('\n')
    await writeFile(join(folder, `${page.replaceAll(/\W/g, '-')}.ts`), `${code}\nexport {}\n`)
  }
  const paths = Object.fromEntries(Object.entries(PUBLIC).map(([name, file]) => [`vivarium/${name}`, [join(root, file)]]))
  const settings = { extends: join(root, 'tsconfig.json'), compilerOptions: { paths }, include: ['.'] }
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(settings))
  return folder
}

/** The TypeScript of a page, piece by piece. */
export function snippets(markdown: string): string[] {
  return [...markdown.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = '']) => code)
}
