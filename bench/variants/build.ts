/** Builds `vivarium/server` twice, alike but for the reliability features, which one of the two has none of. */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Plugin, rolldown } from 'rolldown'
import { root } from '../../scripts/lib/files.ts'

export interface Variants {
  /** Addresses to import. */
  readonly all: string
  readonly none: string
}

export async function buildVariants(): Promise<Variants> {
  return { all: await build('all', []), none: await build('none', [without]) }
}

const without: Plugin = {
  name: 'without-reliability',
  resolveId: (id, importer) =>
    id.endsWith('/features.ts') && importer?.includes('/src/server/') ? join(root, 'bench', 'variants', 'none.ts') : undefined,
}

/** In dist, where the next build of the package sweeps it away, and from where packages are found. */
async function build(name: string, plugins: Plugin[]): Promise<string> {
  const dir = join(root, 'dist', 'bench', name)
  const bundle = await rolldown({
    cwd: root,
    input: { server: 'src/server/index.ts' },
    plugins,
    external: id => !/^[./]|^[A-Za-z]:|^@oxc-project\/runtime/.test(id),
    platform: 'neutral',
    transform: { target: 'node22' },
  })
  await bundle.write({ dir, format: 'esm', minify: { compress: true, mangle: false, codegen: { removeWhitespace: false } } })
  await bundle.close()
  return pathToFileURL(join(dir, 'server.js')).href
}
