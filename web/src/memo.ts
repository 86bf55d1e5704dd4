import { Component, createElement, type ComponentType, type FunctionComponent } from "preact";

/** memo draws a component again only if its properties differ by the given comparison. */
export function memo<P extends object>(f: FunctionComponent<P>, same: (a: P, b: P) => boolean): ComponentType<P> {
  return class Memo extends Component<P> {
    shouldComponentUpdate(next: Readonly<P>) { return !same(this.props as P, next as P); }
    render() { return createElement(f as FunctionComponent<object>, this.props as object); }
  } as unknown as ComponentType<P>;
}
