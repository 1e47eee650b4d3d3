// What the viewer uses of three.js; everything else is left out of the bundle.
export {
  BufferAttribute, BufferGeometry, Color, DoubleSide, FrontSide, Group, LatheGeometry, Matrix4, Mesh,
  PerspectiveCamera, Points, Quaternion, Scene, ShaderMaterial, Vector2, Vector3, WebGLRenderer,
} from "three";
export { TrackballControls } from "three/examples/jsm/controls/TrackballControls.js";
