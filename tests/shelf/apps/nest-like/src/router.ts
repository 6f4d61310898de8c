const paths = new Map<string, string>();

export function Get(path: string) {
  return (_target: object, name: string): void => { paths.set(path, name); };
}

export function routes(controller: object): Map<string, () => unknown> {
  const methods = controller as Record<string, () => unknown>;
  return new Map([...paths].map(([path, name]) => [path, () => methods[name]()]));
}
