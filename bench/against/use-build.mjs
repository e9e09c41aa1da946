/**
 * `node --import 'file:…/use-build.mjs?build=DIR' script` lets the script import `vivarium/…` from the build in DIR. Both builds of a
 * comparison are loaded by it, so that its own cost is in both.
 */
import { registerHooks } from 'node:module'
import { pathToFileURL } from 'node:url'

const folder = new URL(import.meta.url).searchParams.get('build')
const base = pathToFileURL(`${folder}/dist/`)

registerHooks({
  resolve(specifier, context, next) {
    if (!specifier.startsWith('vivarium/')) return next(specifier, context)
    return { url: new URL(`${specifier.slice('vivarium/'.length)}.js`, base).href, shortCircuit: true }
  },
})
