/** What a server has to show beside its endpoint, for every way of serving it over HTTP. */
import type { Engine } from '../engine/engine.ts'
import type { Downloads, OwnDocument } from '../transports/http/document.ts'

/** By engine, for every carrier that is opened later. */
interface Beside {
  readonly document?: OwnDocument | undefined
  readonly downloads?: Downloads | undefined
}

const none: Beside = {}
const known = new WeakMap<Engine, Beside>()

export function showBeside(engine: Engine, more: Beside): void {
  known.set(engine, { ...known.get(engine), ...more })
}

export function shownBeside(engine: Engine): Beside {
  return known.get(engine) ?? none
}
